"""A cache in the memory of Swift's proxy. Swift's own needs a memcached; without one, each request first asks the servers of the
account and of the container.
"""
import json
from time import monotonic


class MemoryCache:
    """What Swift's proxy, one process, uses of its client of a memcached."""

    def __init__(self):
        self._entries = {}  # from key to text and end

    def get(self, key, raise_on_error=False):
        text, end = self._entries.get(key, ("null", 0))
        return json.loads(text) if monotonic() < end else None

    def set(self, key, value, serialize=True, time=0, min_compress_len=0, raise_on_error=False):
        self._entries[key] = json.dumps(value), monotonic() + time if time else float("inf")

    def delete(self, key, server_key=None):
        self._entries.pop(key, None)


class Filter:
    def __init__(self, app):
        self.app = app
        self._cache = MemoryCache()

    def __call__(self, environment, start_response):
        environment["swift.cache"] = self._cache
        return self.app(environment, start_response)


def filter_factory(global_conf, **local_conf):
    return Filter

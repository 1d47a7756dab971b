"""Tables, components and resolved specifications for the tests of comparisons."""
import unittest

import service
from lengthwise import protocol, published
from lengthwise._proto import specification_pb2
from lengthwise.connection import Connection, Settings
from lengthwise.published import PublishedTable, Quantity

SPECIFICATIONS = service.ROOT / "experiments"


def component(name, label="", **parameters):
    result = specification_pb2.Component(name=name, label=label)
    for parameter, value in parameters.items():
        if isinstance(value, bool):
            result.parameters[parameter].bool_value = value
        elif isinstance(value, str):
            result.parameters[parameter].string_value = value
        else:
            result.parameters[parameter].number_value = value
    return result


def table_of(rows, columns, cells, quantity=Quantity.UNSEEN_ACCURACY, **more):
    fields = {
        "key": "p/table_1", "citation": "Doe 2020 (X), A title", "table": "Table 1", "title": "t",
        "aggregation": "the best of 30", "protocol": {}, "unknown": {}, "substitutes": [], "released_code": [],
        "notes": [], **more,
    }  # fmt: skip
    return PublishedTable(rows=rows, columns=columns, cells=cells, quantity=quantity, **fields)


class ResolvedTest(unittest.TestCase):
    """Tests that resolve specifications with a server."""

    @classmethod
    def setUpClass(cls):
        cls.server = service.Server()
        cls.connection = Connection(Settings(server=cls.server.address), timeout=60)

    @classmethod
    def tearDownClass(cls):
        cls.connection.close()
        cls.server.kill()

    def compare(self, key, yaml):
        table = published.find(key)
        here = protocol.resolve(self.connection, f"name: x\nprotocol: {table.protocol['protocol']}\n{yaml}")
        return protocol.compare(here, protocol.resolve_protocol(self.connection, table), table)

    def lines(self, key, yaml):
        return [f"{one.what}: {one.here} | {one.published}" for one in self.compare(key, yaml).differences]

    def left_open(self, key, yaml):
        return {one.what: f"{one.here}: {one.note}" for one in self.compare(key, yaml).open_fields}

"""The commands of `python -m lengthwise`: each module has run(arguments, output). definitions.json has their options."""
from __future__ import annotations

import importlib.resources
import json
from typing import Any

# By command. `lengthwise` makes its help of the same file (client/commands/python_commands.cc).
DEFINITIONS: dict[str, Any] = json.loads(importlib.resources.files(__name__).joinpath("definitions.json").read_text("utf-8"))

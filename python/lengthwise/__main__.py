"""`python -m lengthwise`."""
import sys

from lengthwise.command_line import main

sys.exit(main())

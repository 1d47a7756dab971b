"""The release."""
__version__ = "0.2.0"

"""Prints what is in a picture, for tests: its size, then the texts of an SVG or how many byte values a PNG's pixels have."""
import struct
import sys
import xml.etree.ElementTree
import zlib

SVG = "{http://www.w3.org/2000/svg}"
with open(sys.argv[1], "rb") as file:
    data = file.read()
if data.startswith(b"\x89PNG\r\n\x1a\n"):
    pixels = b""
    at = 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            print("png %d x %d" % struct.unpack(">II", body[:8]))
        if kind == b"IDAT":
            pixels += body
        at += 12 + length
    print("values: %d" % len(set(zlib.decompress(pixels))))
else:
    root = xml.etree.ElementTree.fromstring(data)
    print("svg %s x %s" % (root.get("width"), root.get("height")))
    for text in root.iter(SVG + "text"):
        print("text: " + "".join(text.itertext()).strip())
    print("images: %d" % len(list(root.iter(SVG + "image"))))

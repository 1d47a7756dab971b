"""`lengthwise web`: experiments in a browser, read-only.

Pages are HTML from the server (templates/). Charts are drawn by uPlot from the pictures of lengthwise.plots, so that a page
shows the numbers of `results`, `plot` and `compare`. A page learns by server-sent events what has changed (live.py), and
then asks again for the parts that show it.
"""

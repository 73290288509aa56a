"""A separate program, without tokensieve, that draws {"specs": name → JSON text, "also": endings} from standard input and writes
name → ending → base64 of the file."""

import json
import re
import sys
from base64 import b64encode

import vl_convert

if __name__ == "__main__":
    # the first picture loads and compiles Vega, which takes longer than drawing: done before there is anything to draw
    vl_convert.vegalite_to_svg(
        {"data": {"values": [{}]}, "mark": "point", "encoding": {"x": {"field": "a"}}}
    )
    asked, out = json.load(sys.stdin.buffer), {}
    for name, spec in asked["specs"].items():
        try:
            svg = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
        except (
            ValueError
        ):  # Vega may cut a long label within a character of two UTF-16 units, such as an emoji
            svg = vl_convert.vegalite_to_svg(
                re.sub("[\U00010000-\U0010ffff]", "\ufffd", spec), allowed_base_urls=[]
            )
        files = {"svg": svg.encode()}
        if "png" in asked["also"]:
            files["png"] = vl_convert.svg_to_png(svg, scale=2)
        if "pdf" in asked["also"]:
            files["pdf"] = vl_convert.svg_to_pdf(svg)
        out[name] = {ending: b64encode(file).decode() for ending, file in files.items()}
    json.dump(out, sys.stdout)

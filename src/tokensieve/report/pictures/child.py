"""A program that draws pictures, without tokensieve.

It reads {"specs": name → JSON text, "also": endings} from standard input and writes
name → ending → base64 of the file.
"""

import json
import re
import sys
from base64 import b64encode

import vl_convert

WARM_UP = {"data": {"values": [{}]}, "mark": "point", "encoding": {"x": {"field": "a"}}}


def draw(specification: str) -> str:
    """The SVG of a Vega-Lite specification."""
    try:
        return vl_convert.vegalite_to_svg(specification, allowed_base_urls=[])
    except ValueError:
        # Vega may cut a long label between the two UTF-16 units of a character such as an emoji
        plain = re.sub("[\U00010000-\U0010ffff]", "\ufffd", specification)
        return vl_convert.vegalite_to_svg(plain, allowed_base_urls=[])


if __name__ == "__main__":
    # The first picture loads and compiles Vega, which takes longer than drawing. This is done
    # before there is anything to draw.
    vl_convert.vegalite_to_svg(WARM_UP)
    request = json.load(sys.stdin.buffer)
    drawings = {}
    for name, specification in request["specs"].items():
        svg = draw(specification)
        files = {"svg": svg.encode()}
        if "png" in request["also"]:
            files["png"] = vl_convert.svg_to_png(svg, scale=2)
        if "pdf" in request["also"]:
            files["pdf"] = vl_convert.svg_to_pdf(svg)
        drawings[name] = {ending: b64encode(file).decode() for ending, file in files.items()}
    json.dump(drawings, sys.stdout)

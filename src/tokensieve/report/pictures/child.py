"""Draws specifications from standard input as SVG and PNG: run as a program of its own, which imports nothing of tokensieve."""

from __future__ import annotations

import json
import sys
from base64 import b64encode

import vl_convert


def main() -> None:
    """Read {"specs": name → JSON text, "also": endings}, write name → ending → base64 of the file."""
    asked = json.load(sys.stdin.buffer)
    out = {}
    for name, spec in asked["specs"].items():
        svg = str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
        files = {"svg": svg.encode()}
        if "png" in asked["also"]:
            files["png"] = vl_convert.svg_to_png(svg, scale=2)
        if "pdf" in asked["also"]:
            files["pdf"] = vl_convert.svg_to_pdf(svg)
        out[name] = {ending: b64encode(file).decode() for ending, file in files.items()}
    sys.stdout.write(json.dumps(out))


if __name__ == "__main__":
    main()

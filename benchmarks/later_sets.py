"""Twelve more sets for `fresh.py`, built after detection had been developed on half of those in `fresh_sets.py`.

As there, each is read from a package of a fixed version, and NATURAL names artefacts that are visible in the texts; it was
written by reading one or two texts of every class and the code below, before any of these sets was audited (27 November 2026).
"""

from __future__ import annotations

import ast
import gzip
import json
import re
import subprocess
from pathlib import Path

import yaml

import fresh_sets
from fresh_sets import Rows, one

PACKAGES = {
    "chat_languages": ("pip", "chatterbot-corpus==1.3.3"),
    "checks": ("pip", "checkov==3.3.30"),
    "cloud": ("pip", "botocore==1.44.8"),
    "countries": ("npm", "world-factbook@1.1.0"),
    "foldoc": ("apt-get", "dict-foldoc=20230119-1"),
    "fortunes_cs": ("apt-get", "fortunes-cs=2.0.9-1.1"),
    "fortunes_de": ("apt-get", "fortunes-de=0.35-1"),
    "fortunes_en": ("apt-get", "fortunes=1:1.99.1-7.3"),
    "fortunes_it": ("apt-get", "fortunes-it=1.99-4.1"),
    "weather_de": ("pip", "ovos-skill-weather==1.0.6"),
    "weather_en": ("pip", "ovos-skill-weather==1.0.6"),
}


def chat_languages(folder: Path) -> Rows:
    """Sentences of small talk, by their language."""
    for path in sorted(folder.glob("chatterbot_corpus/data/*/*.yml")):
        for talk in yaml.safe_load(path.read_text(encoding="utf-8"))["conversations"]:
            for sentence in talk:
                yield str(sentence), path.parent.name


def checks(folder: Path) -> Rows:
    """What a check of cloud configurations ensures, by the provider."""
    for path in sorted(folder.glob("checkov/*/checks/*/*/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id == "name"
            )
            if named and isinstance(node.value, ast.Constant):
                yield str(node.value.value), path.parent.name


def cloud(folder: Path) -> Rows:
    """Paragraphs on operations of cloud services, by the service."""
    kept = (
        "athena autoscaling backup batch budgets cloudfront codebuild connect dms ec2 ecs eks glue iam iot kms lambda "
        "lex-models rds s3"
    )
    for name in kept.split():
        path = sorted(folder.glob(f"botocore/data/{name}/*/service-2.json.gz"))[-1]
        for operation in json.loads(gzip.decompress(path.read_bytes()))["operations"].values():
            for paragraph in re.findall(r"<p>.*?</p>", operation.get("documentation", "")):
                if len(paragraph.split()) >= 8:
                    yield paragraph, name


def countries(folder: Path) -> Rows:
    """Introductions to countries, by continent."""
    for path in sorted(folder.glob("package/src/data/factbook/*.json")):
        country = json.loads(path.read_text(encoding="utf-8"))
        yield country["introduction"] or "", country["continent"]


def foldoc(folder: Path) -> Rows:
    """Entries of a dictionary of computing, by field."""
    text = gzip.decompress(one(folder, "usr/share/dictd/*.dz").read_bytes()).decode(
        "utf-8", errors="replace"
    )
    for field, entry in re.findall(r"\n\n\s+<(\w+)[^>]*>\s+(.+?)(?=\n\n\S|\Z)", text, re.DOTALL):
        yield re.sub(r"\n[ \t]*", "\n", entry), field


def fortunes(folder: Path) -> Rows:
    """Sayings without their signatures, by the file they are in."""
    for path in sorted(folder.glob("usr/share/games/fortunes/**/*")):
        if path.is_file() and path.suffix == "" and not path.is_symlink():
            for saying in re.split(r"\n%\n", path.read_text(encoding="utf-8", errors="replace")):
                yield re.split(r"\n\s*--", saying)[0].strip(), path.name


def packages(folder: Path) -> Rows:
    """One-line descriptions of Debian's packages, by section."""
    found = subprocess.run(
        ["apt-cache", "dumpavail"], capture_output=True, text=True, check=True, cwd=folder
    ).stdout
    yield from re.findall(
        r"^Description(?:-en)?: (.+)\n(?:.*\n)*?Section: (.+)$", found, re.MULTILINE
    )


def weather(folder: Path, language: str) -> Rows:
    """Questions about the weather, from templates, by intent."""
    for path in sorted(folder.glob(f"ovos_skill_weather/locale/{language}/**/*.intent")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield line, path.stem


BUILDERS = {
    name: globals()[name]
    for name in ("chat_languages", "checks", "cloud", "countries", "foldoc", "packages")
}
BUILDERS |= {f"fortunes_{name}": fortunes for name in ("cs", "de", "en", "it")}
BUILDERS["weather_de"] = lambda folder: weather(folder, "de-de")
BUILDERS["weather_en"] = lambda folder: weather(folder, "en-us")
LATER = tuple(sorted(BUILDERS))
NATURAL = {
    name: frozenset(words.split())
    for name, words in {
        "cloud": "p a i b li ul code note href https docs aws amazon com html",  # markup and links
        "foldoc": "jargon file home page usenet newsgroup mail",  # sources
        "fortunes_cs": "str strana",  # page
        # headings and fixed beginnings
        "fortunes_de": "rezept kategorie zutaten gedecke letzte worte stilblüten wußten wie man sein kind nicht nennen sollte "
        "was die neuen unwissenden holen müssen lieber f a hallo",
        "fortunes_en": "stardate knghtbrd n v adj",
        "fortunes_it": "legge regola corollario",
        "packages": "transitional dummy documentation doc development files headers profiling feature more",  # parts of a package
        "weather_de": "location",  # what is to be put in
        "weather_en": "location",
    }.items()
}
fresh_sets.NATURAL.update(NATURAL)
fresh_sets.PACKAGES.update(PACKAGES)
fresh_sets.BUILDERS.update(BUILDERS)

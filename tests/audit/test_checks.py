"""Checks of other packages run like ours; the documentation's example is one, and its list of
checks is complete."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import polars as pl
import pytest

from tokensieve import Budget, Settings, audit
from tokensieve.auditing.checks import registry
from tokensieve.errors import InputError
from tokensieve.report.html import page

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"
QUICK = Settings(baseline=False, thorough=False, validation_share=0.0)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Brings the example of the documentation as an installed package would, without some of its
    text."""

    def installed(without: str) -> None:
        code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        assert code is not None and len(code[1].splitlines()) <= 30 and without in code[1]
        names: dict[str, object] = {"__name__": "your_package"}
        exec(code[1].replace(without, ""), names)
        entry = EntryPoint("shouting", "your_package:Shouting", "tokensieve.checks")
        monkeypatch.setattr(EntryPoint, "load", lambda _: names["Shouting"])
        monkeypatch.setattr(
            registry, "entry_points", lambda group: [entry] if group == "tokensieve.checks" else []
        )
        registry.all_checks.cache_clear()

    yield installed
    registry.all_checks.cache_clear()


def documents(loud: int) -> pl.DataFrame:
    texts = [f"text number {i} is {'good' if i % 2 else 'bad'}" for i in range(100)]
    texts = [text.upper() if i < loud else text for i, text in enumerate(texts)]
    return pl.DataFrame({"text": texts, "label": [i % 2 for i in range(100)]})


def test_the_example_of_the_documentation_finds_is_shown_and_fails_on_demand(
    install: Callable[[str], None],
) -> None:
    install("")
    limit = Budget.parse("shouting=5%,leak=0")
    found = audit(
        documents(20),
        Settings(baseline=False, thorough=False, validation_share=0.0, budget=limit),
        text="text",
        label="label",
    )
    one = next(finding for finding in found.findings if finding.kind == "shouting")
    assert (
        "are written entirely in capitals" in one.headline and one.documents == one.rows.height > 10
    )
    assert found.exceeded == ("shouting",) and found.fails
    assert one.headline in str(found.findings_dict()) and one.title == "Shouting"
    assert one.headline in page(found.report(), {}) and one.action in page(found.report(), {})
    streamed = audit(documents(20), QUICK, text="text", label="label", stream=True)
    assert one.headline in str(streamed.findings_dict())
    quiet = audit(documents(0), QUICK, text="text", label="label")
    assert not [finding for finding in quiet.findings if finding.kind == "shouting"]


def test_documents_of_a_finding_may_be_a_mask(install: Callable[[str], None]) -> None:
    install(".arg_true().to_numpy()")
    found = audit(
        documents(20),
        Settings(baseline=False, thorough=False, validation_share=0.0),
        text="text",
        label="label",
    )
    one = next(finding for finding in found.findings if finding.kind == "shouting")
    assert (
        one.documents == one.rows.height
        and one.rows["row"].is_unique().all()
        and one.rows["row"].max() <= 20
    )


def test_the_name_of_a_check_that_is_not_installed_is_unknown() -> None:
    limited = Settings(budget=Budget.parse("not_installed=0"))
    with pytest.raises(InputError, match="'not_installed' is not a kind of finding"):
        audit(documents(0), limited, text="text", label="label")


def all_entries() -> str:
    """What docs/checks.md ends with."""
    return "\n".join(check.glossary_entry for check in registry.all_checks()).strip()


def test_the_documentation_lists_every_check_as_it_is() -> None:
    assert all_entries() in PAGE.read_text(), (
        "python tests/audit/test_checks.py writes the end of docs/checks.md"
    )


def test_every_check_says_what_it_looks_for_and_what_to_do() -> None:
    for check in registry.all_checks():
        assert (
            check.name.islower()
            and check.title
            and check.about.endswith(".")
            and check.action.endswith(".")
        )
    assert {
        "shortcut",
        "leak",
        "contradiction",
        "labels",
        "imbalance",
        "empty",
        "drift",
        "unstable",
        "repeated",
    } <= {check.name for check in registry.all_checks()}


@pytest.mark.parametrize(
    "fault", ['title = "Shouting"', "share = Share.count(loud.sum(), len(texts))"]
)
def test_a_fault_of_another_packages_check_is_said_to_be_its(
    fault: str, install: Callable[[str], None]
) -> None:
    install(fault)
    with pytest.raises((InputError, NameError)) as caught:
        audit(documents(20), QUICK, text="text", label="label")
    assert "shouting" in " ".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


if __name__ == "__main__":
    start = PAGE.read_text().partition("\n**")[0]
    PAGE.write_text(f"{start}\n{all_entries()}\n")

"""Odd files that people have: nothing is read silently wrong, and every hint works."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import layouts
import polars as pl
import pytest
from layouts import BAD, FIRST, GOOD, LABELS, PLAIN, PROMPTS, SECOND, TEXTS, N, options_of, rows

from calls import Run
from tokensieve.errors import InputError
from tokensieve.read.copies import cell_texts, text_cells
from tokensieve.read.label_lists import settings_per_label
from tokensieve.read.reader import read_corpus
from tokensieve.read.settings import ReadSettings


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def lines_of(*table: list[str], separator: str = "\t") -> str:
    return "".join(separator.join(row) + "\n" for row in table)


def suggested(problem: InputError) -> dict[str, Any]:
    """The options that a message suggests."""
    words = [word.rstrip(";,)") for word in shlex.split(str(problem).replace("'", ""))]
    first = next(i for i, word in enumerate(words) if word.startswith("--"))
    return options_of("audit " + " ".join(map(shlex.quote, words[first:])))[1]


# ---- quotes


def tsv_with_open_quotes(folder: Path) -> Path:
    """Every eighth text begins with a quotation mark that a later one ends."""
    texts = list(TEXTS)
    for i in range(1, N - 3, 8):
        texts[i] = f'"{texts[i]}'
        texts[i + 3] = f'{texts[i + 3]}"'
    table = [[label, text] for label, text in zip(LABELS, texts, strict=True)]
    return write(folder, "open.tsv", lines_of(["label", "text"], *table))


def test_rows_that_quotes_hide_are_named(tmp_path: Path) -> None:
    path = tsv_with_open_quotes(tmp_path)
    hidden = read_corpus(path)
    note = " ".join(hidden.reading.detected)
    assert len(hidden.labels) == N - 9
    assert "lines 3 to 6" in note and "2 other fields" in note and "--no-quotes" in note
    whole = read_corpus(path, quotes=False)
    assert (
        len(whole.labels) == N and whole.texts[1] == f'"{TEXTS[1]}' and not whole.reading.detected
    )


def test_texts_of_several_lines_are_no_hidden_rows(tmp_path: Path) -> None:
    table = [
        [f'"{text}, yes\nand, well, no"', label] for text, label in zip(TEXTS, LABELS, strict=True)
    ]
    path = write(tmp_path, "a.csv", lines_of(["text", "label"], *table, separator=","))
    assert not read_corpus(path).reading.detected


@pytest.mark.parametrize("text", ['"so" it was', '"unclosed'])
def test_a_fault_of_quoting_offers_no_quotes(tmp_path: Path, text: str) -> None:
    table = [[label, text] for label, text in zip(LABELS, TEXTS, strict=True)]
    path = write(tmp_path, "a.tsv", lines_of(["label", "text"], *table, ["positive", text]))
    with pytest.raises(InputError, match="--no-quotes"):
        read_corpus(path)
    assert read_corpus(path, quotes=False).texts[N] == text


def test_options_of_tables_and_workbooks_are_refused_elsewhere(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", layouts.json_lines(PLAIN))
    for options in ({"quotes": False}, {"sheet": "Data"}):
        with pytest.raises(InputError, match="leave"):
            read_corpus(path, **options)


# ---- annotators


def annotated(choices: list[list[str]]) -> list[dict[str, Any]]:
    return [
        {"text": text, "annotations": [{"label": y, "user": user} for user, y in enumerate(own)]}
        for text, own in zip(TEXTS, choices, strict=False)
    ]


def test_annotators_decide_by_majority_and_their_disagreement_is_counted() -> None:
    choices = [[y] * 3 for y in LABELS]
    choices[0] = ["negative", "positive", "negative"]
    choices[1] = ["negative", "positive"]
    choices[2] = []
    corpus = read_corpus(annotated(choices), label="annotations.label")
    counts = corpus.reading.counts
    assert len(corpus.labels) == N - 2 and corpus.classes[corpus.labels[0]] == "negative"
    assert (counts["annotated"], counts["no_majority"]) == (N - 1, 1)
    assert corpus.reading.disagreements == (1, 2)
    assert counts["missing_label"] == 2
    assert f"annotators disagree on 2 of {N - 1} documents" in " ".join(corpus.reading.lines())
    settings = ReadSettings(label="annotations.label")
    assert not settings_per_label(annotated(choices), settings).settings
    second = read_corpus(annotated(choices), label="annotations.label", annotator="1")
    assert second.classes[second.labels[0]] == "positive" and len(second.labels) == N - 1


def rows_of_annotations(choices: list[list[str]]) -> list[dict[str, Any]]:
    return [
        {"text": text, "annotator": f"a{user}", "choice": y, "id": number}
        for number, (text, own) in enumerate(zip(TEXTS, choices, strict=False))
        for user, y in enumerate(own)
    ]


def test_rows_of_annotations_are_read_as_lists_of_annotations_are() -> None:
    choices = [[y] * 3 for y in LABELS]
    choices[0] = ["positive", "negative", "negative"]
    choices[1] = ["negative", "positive"]
    rows = rows_of_annotations(choices)
    listed = read_corpus(annotated(choices), label="annotations.label")
    for options in ({}, {"stream": True}):
        corpus = read_corpus(pl.DataFrame(rows), **options)
        assert corpus.texts.to_list() == listed.texts.to_list()
        assert corpus.labels.tolist() == listed.labels.tolist()
        for count in ("annotated", "no_majority", "kept"):
            assert corpus.reading.counts[count] == listed.reading.counts[count]
        assert corpus.reading.disagreements == (2, 4)  # of the majority, and of none
    one = read_corpus(pl.DataFrame(rows), annotator="a0")
    assert one.classes[one.labels[0]] == "positive" and len(one.labels) == N
    apart = read_corpus(pl.DataFrame(rows), annotated_by="")
    assert len(apart.labels) == len(rows) and not apart.reading.counts["annotated"]
    with pytest.raises(InputError, match="the annotators are 'a0', 'a1', 'a2'"):
        read_corpus(pl.DataFrame(rows), annotator="kim")


@pytest.mark.parametrize("column", ["annotator", "user"])
def test_an_annotator_with_one_row_per_text_changes_nothing(column: str) -> None:
    data = pl.DataFrame({"text": TEXTS, "label": LABELS, "id": range(N)})
    users = pl.Series(column, [f"u{i % 3}" for i in range(N)])
    corpus = read_corpus(data.with_columns(users))
    assert len(corpus.labels) == N and not corpus.reading.lines()


def test_writers_who_repeat_each_other_are_no_annotators() -> None:
    texts = [*TEXTS, TEXTS[0]]
    data = pl.DataFrame(
        {
            "text": texts,
            "user": [f"u{i}" for i in range(N + 1)],
            "label": [*LABELS, LABELS[0]],
        }
    )
    corpus = read_corpus(data)
    assert len(corpus.labels) == N + 1 and corpus.reading.counts["duplicates"] == 1
    assert "--annotated-by user" in " ".join(corpus.reading.lines())
    assert len(read_corpus(data, annotated_by="user").labels) == N


@pytest.mark.parametrize("mark", ["#", "\n", ", "])
def test_labels_between_marks_may_be_several(mark: str) -> None:
    joint = [f"{y}{mark}long" if i % 3 else y for i, y in enumerate(LABELS)]
    lines = " ".join(read_corpus((TEXTS, joint)).reading.lines())
    assert "--label-separator" in lines
    assert "C#" not in " ".join(read_corpus((TEXTS, ["C#", "F#"] * (N // 2))).reading.lines())


def test_rows_of_a_document_that_are_lists_are_named(tmp_path: Path) -> None:
    parts = {"train": [[t, y] for t, y in zip(TEXTS, LABELS, strict=True)], "val": [["a", "b"]]}
    path = write(tmp_path, "a.json", json.dumps(parts).encode())
    with pytest.raises(InputError, match="'train' contains lists such as") as caught:
        read_corpus(path)
    assert "--text" not in str(caught.value)


@pytest.mark.slow
def test_long_cells_take_no_quadratic_time() -> None:
    n = 100_000
    for cell in (
        "[{}" + "\n" * n + "x",
        "[" + " " * n + "{",
        "[" + "' " * n,
        "<" * n + "x",
        "a " * n + "!",
    ):
        assert read_corpus(([*TEXTS, cell], [*LABELS, "positive"])).texts[N] == cell
        labels = [cell + "?" if i % 6 == 1 else y for i, y in enumerate(LABELS)]
        assert len(read_corpus((TEXTS, labels)).labels) == N
        winner = [cell if i == 1 else "a" if i % 3 else "b" for i in range(N)]
        judged = pl.DataFrame({"a": GOOD, "b": BAD, "w": winner})
        with pytest.raises(InputError, match="w"):
            read_corpus(judged, pairs="a,b", winner="w")
    prompts = [f"\n\nHuman: hi {i}" + "\n" * n + "\n\nAssistant: ha" for i in range(N)]
    transcripts = pl.DataFrame(
        {"a": [f"{prompt} yes" for prompt in prompts], "b": [f"{prompt} no" for prompt in prompts]}
    )
    assert len(read_corpus(transcripts, pairs="a,b").labels) == 2 * N


def test_texts_with_several_ids_stay_apart() -> None:
    rows = rows_of_annotations([[y, y] for y in LABELS])
    again = [row | {"id": row["id"] + 100} for row in rows[:2]]
    corpus = read_corpus(pl.DataFrame([*rows, *again]))
    assert len(corpus.labels) == N + 1 and corpus.reading.counts["duplicates"] == 1


def test_columns_of_annotators_name_the_option_that_reads_them() -> None:
    first = list(LABELS)
    second = ["negative", *LABELS[1:]]
    data = pl.DataFrame({"text": TEXTS, "kim": first, "lee": second})
    with pytest.raises(InputError, match="--annotated-by kim,lee"):
        read_corpus(data)
    corpus = read_corpus(data, annotated_by="kim,lee")
    n_disputed = sum(a != b for a, b in zip(first, second, strict=True))
    assert corpus.reading.counts["annotated"] == N
    assert len(corpus.reading.disagreements) == n_disputed
    named = data.rename({"kim": "label_rater1", "lee": "label_rater2"}).with_columns(
        label=pl.Series(LABELS)
    )
    assert "--annotated-by label_rater1,label_rater2" in " ".join(
        read_corpus(named).reading.lines()
    )
    with pytest.raises(InputError, match="leave out --label"):
        read_corpus(data, annotated_by="kim,lee", label="lee")


def test_annotators_of_several_labels_keep_what_most_of_them_chose() -> None:
    data = [
        {
            "text": text,
            "annotations": [
                {"user": "a", "label": [y, "odd"]},
                {"user": "b", "label": [y]},
                {"user": "c", "label": [y, "odd"] if i % 2 else []},
            ],
        }
        for i, (text, y) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    corpus = read_corpus(data, label="annotations.label", having="odd")
    assert [corpus.classes[y] for y in corpus.labels] == ["no", "yes"] * (N // 2)


def test_an_annotator_needs_annotations() -> None:
    with pytest.raises(InputError, match="--annotator needs"):
        read_corpus((TEXTS, LABELS), annotator="kim")


# ---- labels in other forms


@pytest.mark.parametrize(
    "data",
    [
        rows(text=TEXTS, annotations=[[{"label": y, "user": 1}] for y in LABELS]),
        rows(text=TEXTS, label=[{"id": i % 2, "name": y} for i, y in enumerate(LABELS)]),
    ],
)
def test_objects_where_a_label_belongs_name_the_field(data: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError) as caught:
        read_corpus(data)
    corpus = read_corpus(data, **suggested(caught.value))
    assert [corpus.classes[y] for y in corpus.labels] == LABELS


def test_spans_are_no_labels() -> None:
    data = rows(text=TEXTS, label=[[[0, 5, "PLACE"]] * (1 + i % 2) for i in range(N)])
    with pytest.raises(InputError, match=r"the labels contain lists .*choose another column"):
        settings_per_label(data, ReadSettings())


@pytest.mark.parametrize("labels", [["[OTHER]", "{x: 1}"], ["[a b]", "plain"], ["{}", "{a}x"]])
def test_ordinary_labels_in_brackets_stay_as_they_are(labels: list[str]) -> None:
    corpus = read_corpus((TEXTS, [labels[i % 2] for i in range(N)]))
    assert set(corpus.classes) == set(labels)


def test_truth_values_beside_numbers_may_be_merged() -> None:
    labels = [
        (1, "1", 1.0, True)[i % 4] if i % 2 else (0, "0", 0.0, False)[i % 4] for i in range(N)
    ]
    notes = " ".join(read_corpus(rows(text=TEXTS, label=labels)).reading.lines())
    assert "the classes '1', 'True' may be one value" in notes and "--group 1=1,True" in notes


def test_numbers_among_texts_are_read_and_counted() -> None:
    corpus = read_corpus(rows(text=[12345, *TEXTS[1:]], label=LABELS))
    assert corpus.texts[0] == "12345" and corpus.reading.counts["numbers_as_text"] == 1


# ---- hidden labels


@pytest.mark.parametrize("hidden", [-1, "", "?", None])
def test_hidden_labels_of_marked_test_rows_are_set_aside(hidden: object) -> None:
    data = [row | {"split": "train"} for row in PLAIN]
    data += [{"text": text, "label": hidden, "split": "test"} for text in TEXTS[:5]]
    for options in ({}, {"split": "split"}):
        corpus = read_corpus(data, **options)
        assert corpus.test is None and len(corpus.labels) == N
        assert list(corpus.reading.hidden.values()) == [5]


def test_hidden_labels_of_a_named_test_set_are_refused() -> None:
    test = rows(text=TEXTS[:5], label=[-1] * 5)
    with pytest.raises(InputError, match="leave out --test"):
        read_corpus(PLAIN, test=test)


# ---- workbooks


@pytest.mark.slow
def test_the_sheet_that_is_read_and_the_others_are_named(tmp_path: Path) -> None:
    notes = rows(notes=["These reviews were collected in spring."])
    path = write(tmp_path, "a.xlsx", layouts.workbook(PLAIN, before={"Read me": notes}))
    with pytest.raises(InputError, match=r"a\.xlsx, sheet 'Read me'.*'Reviews'.*--sheet") as caught:
        read_corpus(path)
    assert "--no-header" not in str(caught.value)
    corpus = read_corpus(path, sheet="Reviews")
    assert len(corpus.labels) == N and "'Read me'" in corpus.reading.detected[0]
    with pytest.raises(InputError, match="no sheet 'Data'; its sheets are 'Read me', 'Reviews'"):
        read_corpus(path, sheet="Data")


@pytest.mark.slow
def test_the_names_of_sheets_may_be_the_labels(tmp_path: Path) -> None:
    sheets = {
        name: rows(text=[t for t, y in zip(TEXTS, LABELS, strict=True) if y == name])
        for name in ("negative", "positive")
    }
    last = sheets.pop("positive")
    path = write(tmp_path, "a.xlsx", layouts.workbook(last, before=sheets))
    with pytest.raises(InputError, match="--sheet '\\*' --label sheet"):
        read_corpus(path)
    corpus = read_corpus(path, sheet="*", label="sheet")
    assert len(corpus.labels) == N and "'negative'" in " ".join(corpus.reading.detected)


# ---- answers


def test_objects_where_answers_belong_name_the_fields() -> None:
    data = rows(
        question=PROMPTS,
        pos=[{"answer": text, "score": 1.0} for text in GOOD],
        neg=[{"answer": text, "score": 0.0} for text in BAD],
    )
    with pytest.raises(InputError) as caught:
        read_corpus(data, pairs=("pos", "neg"))
    assert read_corpus(data, **suggested(caught.value)).texts.to_list()[::2] == GOOD


def test_best_of_n_compares_each_answer_with_each_other() -> None:
    data = rows(
        prompt=PROMPTS,
        chosen=[[text] if i else [text, "another good one"] for i, text in enumerate(GOOD)],
        rejected=[[text, f"{text} too", f"{text} again"] for text in BAD],
    )
    corpus = read_corpus(data, pairs=("chosen", "rejected"))
    assert len(corpus.labels) == 2 * (6 + 3 * (N - 1)) and corpus.weights is not None
    assert corpus.weights[0] == pytest.approx(1 / 6) and corpus.weights[-1] == pytest.approx(1 / 3)
    assert "hold lists" in " ".join(corpus.reading.detected)
    turns = rows(prompt=PROMPTS, a=[[x, x] for x in GOOD], b=[[x, x] for x in BAD])
    assert read_corpus(turns, pairs=("a", "b")).texts[0] == f"{GOOD[0]}\n{GOOD[0]}"


@pytest.mark.parametrize("form", ["messages", "transcripts"])
def test_only_the_assistant_is_compared_where_conversations_part(form: str) -> None:
    def conversation(prompt: str, answer: str, reply: str) -> object:
        messages = layouts.chat(prompt, answer, reply, f"{answer} again")
        if form == "messages":
            return messages
        names = {"user": "Human", "assistant": "Assistant"}
        return "".join(f"\n\n{names[m['role']]}: {m['content']}" for m in messages)

    data = [
        {"chosen": conversation(p, a, "thank you"), "rejected": conversation(p, b, "wrong again")}
        for p, a, b in zip(PROMPTS, GOOD, BAD, strict=True)
    ]
    corpus = read_corpus(data, pairs=("chosen", "rejected"))
    assert corpus.texts.to_list()[::2] == [f"{text}\n{text} again" for text in GOOD]
    assert "only messages of assistant are compared" in " ".join(corpus.reading.detected)
    users = read_corpus(data, pairs=("chosen", "rejected"), role="user")
    assert users.texts[0] == "thank you" and users.texts[1] == "wrong again"


def test_an_answer_may_contain_a_question() -> None:
    both = [
        f"Human: {PROMPTS[0]}\n\nAssistant: {text}\nQuestion: why?\nAnswer: so" for text in "ab"
    ]
    other = [f"Human: {PROMPTS[2]}\n\nAssistant: {text}" for text in "cd"]
    data = rows(chosen=[both[0], other[0]], rejected=[both[1], other[1]])
    assert (
        read_corpus(data, pairs=("chosen", "rejected")).texts[0] == "a\nQuestion: why?\nAnswer: so"
    )


def test_a_role_needs_conversations() -> None:
    data = rows(prompt=PROMPTS, chosen=GOOD, rejected=BAD)
    with pytest.raises(InputError, match="--role is for conversations"):
        read_corpus(data, pairs=("chosen", "rejected"), role="assistant")


# ---- winners


def judged(values: list[object], **more: list[object]) -> list[dict[str, Any]]:
    return rows(prompt=PROMPTS, answer_a=FIRST, answer_b=SECOND, verdict=values, **more)


FIRST_WON = [i % 3 > 0 for i in range(N)]


@pytest.mark.parametrize(
    ("first", "second", "tie"),
    [
        (1.2, 1.8, 1.5),
        (1, 2, 1.5),
        (2, 4, 3),
        (1, 7, 4),
        ("A>>B", "B>A", "A=B"),
        ("[[A>B]]", "[[B>>A]]", "[[A=B]]"),
        ("A > B", "A < B", "A ~ B"),
        ("A is slightly better", "B is much better", "tie"),
        ("answer_b is worse", "answer_a is clearly worse", "both good"),
        ("A wins", "B wins", "tie"),
    ],
)
def test_what_a_winner_means(first: object, second: object, tie: object) -> None:
    values = [first if won else second for won in FIRST_WON]
    data = judged([*values[:-2], tie, values[-1]])
    if first == 2:
        data[0]["verdict"], data[1]["verdict"] = 5, 1  # both ends of the scale occur
    corpus = read_corpus(data, pairs=("answer_a", "answer_b"), winner="verdict")
    assert corpus.reading.counts["ties"] == 1
    assert corpus.texts.to_list()[: 2 * (N - 2) : 2] == GOOD[: N - 2]


def test_a_winner_that_contradicts_the_scores_is_named() -> None:
    scores = {
        "score_a": [9 if won else 1 for won in FIRST_WON],
        "score_b": [5] * N,
    }
    turned = judged([int(won) for won in FIRST_WON], **scores)  # 1 means the first one here
    notes = " ".join(
        read_corpus(turned, pairs=("answer_a", "answer_b"), winner="verdict").reading.lines()
    )
    assert f"contradicts score_a,score_b in {N} of {N} rows" in notes
    assert "--scores score_a,score_b" in notes
    right = judged([int(not won) for won in FIRST_WON], **scores)
    notes = " ".join(
        read_corpus(right, pairs=("answer_a", "answer_b"), winner="verdict").reading.lines()
    )
    assert "contradicts" not in notes


def test_the_number_of_the_best_answer_in_a_list() -> None:
    answers = [[f"{bad} too", good, bad] for good, bad in zip(GOOD, BAD, strict=True)]
    for first in (0, 1):
        choice = [(i % 2) + first for i in range(N)]
        ordered = [
            own if n == first + 1 else [own[1], own[0], own[2]]
            for own, n in zip(answers, choice, strict=True)
        ]
        data = rows(prompt=PROMPTS, answers=ordered, best=choice)
        corpus = read_corpus(data, pairs=("answers",), winner="best")
        assert set(corpus.texts.to_list()[::2]) == set(GOOD) and len(corpus.labels) == 4 * N
    with pytest.raises(InputError, match=r"row 1: the winner 7 is not the number of one of 3"):
        read_corpus(
            rows(prompt=PROMPTS, answers=answers, best=[7] * N), pairs=("answers",), winner="best"
        )


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (
            judged(["A>B" if won else "B>A" for won in FIRST_WON]),
            "--pairs answer_a,answer_b --winner verdict",
        ),
        (
            rows(
                parent_id=PROMPTS,
                role=["assistant"] * N,
                text=TEXTS,
                rank=[i % 2 for i in range(N)],
            ),
            "--pairs text --ranks rank --by parent_id",
        ),
    ],
)
def test_preference_data_is_recognised(data: list[dict[str, Any]], options: str) -> None:
    with pytest.raises(InputError) as caught:
        read_corpus(data)
    assert suggested(caught.value) == options_of(f"audit {options}")[1]


# ---- class names of the datasets library


def test_class_names_of_the_schema(tmp_path: Path) -> None:
    feature = {"names": ["anger", "joy"], "_type": "ClassLabel"}
    features = {"label": feature, "tags": {"feature": feature, "_type": "Sequence"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    frame = pl.DataFrame(
        rows(
            text=TEXTS, label=[i % 2 for i in range(N - 1)] + [-1], tags=[[i % 2] for i in range(N)]
        )
    )
    frame.write_parquet(tmp_path / "a.parquet", metadata=metadata)
    corpus = read_corpus(tmp_path / "a.parquet")
    assert corpus.classes == ("anger", "joy") and corpus.reading.counts["missing_label"] == 1
    assert read_corpus(tmp_path / "a.parquet", label="tags").classes == ("anger", "joy")


# ---- what public reports of other tools describe


def test_annotations_that_were_withdrawn_do_not_count() -> None:
    other = {"positive": "negative", "negative": "positive"}
    cancelled = [
        {
            "data": {"text": text},
            "annotations": [
                {"completed_by": 1, "result": [{"value": {"choices": [y]}}]},
                {
                    "completed_by": 2,
                    "was_cancelled": True,
                    "result": [{"value": {"choices": [other[y]]}}],
                },
            ],
            "predictions": [{"result": [{"value": {"choices": ["positive"]}}]}],
        }
        for text, y in zip(TEXTS, LABELS, strict=True)
    ]
    with pytest.raises(InputError) as caught:
        read_corpus(cancelled)
    options = suggested(caught.value)
    assert options["label"] == "annotations.result.value.choices"
    corpus = read_corpus(cancelled, **options)
    assert [corpus.classes[y] for y in corpus.labels] == LABELS
    discarded = [
        {
            "text": text,
            "mood.responses": [y, y, other[y]],
            "mood.responses.users": ["a", "b", "c"],
            "mood.responses.status": ["submitted", "submitted", "discarded"],
        }
        for text, y in zip(TEXTS, LABELS, strict=True)
    ]
    corpus = read_corpus(discarded, label="mood.responses")
    assert [corpus.classes[y] for y in corpus.labels] == LABELS
    assert corpus.reading.counts["annotated"] == N and not corpus.reading.disagreements


@pytest.mark.parametrize("comments", ["# by day\n\n", "# a, b\n" * 9])
def test_comments_above_the_header_are_skipped_and_named(tmp_path: Path, comments: str) -> None:
    path = write(tmp_path, "a.csv", comments.encode() + layouts.csv_bytes(PLAIN))
    corpus = read_corpus(path)
    assert len(corpus.labels) == N and "skipped: '# " in " ".join(corpus.reading.detected)


def test_headers_of_joined_files_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", layouts.csv_bytes(PLAIN[:9]) + layouts.csv_bytes(PLAIN[9:]))
    corpus = read_corpus(path)
    counts = corpus.reading.counts
    assert len(corpus.labels) == N
    assert (counts["rows"], counts["repeated_headers"]) == (N + 1, 1)


@pytest.mark.parametrize(
    ("text", "label", "said"),
    [
        ("nan", "positive", "1 document whose whole text is a word for a missing value"),
        ("<NA>", "positive", "1 document whose whole text is a word for a missing value"),
        ("a", "-", "2 documents labelled '-', which may mean no label"),
    ],
)
def test_marks_for_a_missing_value_are_named(text: str, label: str, said: str) -> None:
    labels = [label, *LABELS[1:-1], label]
    notes = read_corpus(([text, *TEXTS[1:]], labels)).reading.lines()
    assert any(note.startswith(said) for note in notes)


def test_objects_written_in_cells_name_their_fields(tmp_path: Path) -> None:
    cells = [json.dumps({"lang": "en", "text": text}) for text in TEXTS]
    path = write(tmp_path, "a.csv", layouts.csv_bytes(rows(payload=cells, label=LABELS)))
    with pytest.raises(InputError) as caught:
        read_corpus(path)
    assert read_corpus(path, **suggested(caught.value)).texts.to_list() == TEXTS


def test_scores_as_fractions_and_without_a_value() -> None:
    better = ["8/10" if won else "2/10" for won in FIRST_WON]
    data = rows(prompt=PROMPTS, a=FIRST, b=SECOND, score_a=better, score_b=["5/10"] * N)
    data[0]["score_b"] = "N/A"
    corpus = read_corpus(data, pairs=("a", "b"), scores=("score_a", "score_b"))
    assert corpus.texts.to_list()[::2] == GOOD[1:]


# ---- copies


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "user", "content": [{"type": "text", "text": "a b"}, {"type": "image_url"}]}],
        {"from": "gpt", "value": "a b"},
        ["a b"],
        [[{"role": "user", "content": "a b"}]],
        "a b",
    ],
)
def test_what_is_read_can_be_written(value: object) -> None:
    row = {"text": value}
    (cell,) = text_cells([row], "text", None)
    assert cell_texts("a.jsonl", [cell], "text").to_list() == ["a b"]
    cell.holder[cell.key] = "b"
    assert '"b"' in json.dumps(row) and "a b" not in json.dumps(row)


def test_an_object_that_is_no_message_is_refused() -> None:
    cells = list(text_cells([{"text": {"body": "a"}}], "text", None))
    with pytest.raises(InputError, match="row 1: 'text' is"):
        cell_texts("a.jsonl", cells, "text")


@pytest.mark.parametrize("spelling", ["indirim", "INDIRIM", "Indirim"])
def test_mask_takes_a_token_in_any_spelling(tmp_path: Path, run: Run, spelling: str) -> None:
    texts = [f"{text} {'INDIRIM' if i % 2 else 'indirim'}" for i, text in enumerate(TEXTS)]
    path = write(tmp_path, "a.csv", layouts.csv_bytes(rows(text=texts, label=LABELS)))
    out = tmp_path / "b.csv"
    assert run("mask", str(path), "--token", spelling, "--out", str(out))[0] == 0
    assert "indirim" not in out.read_text().lower()


# ---- labels that are written in other ways


@pytest.mark.parametrize(
    "written",
    [
        lambda labels: str(tuple(labels)),
        lambda labels: str(set(labels)),
        lambda labels: str(frozenset(labels)),
        lambda labels: f"array({labels!r}, dtype=object)",
        lambda labels: "[ " + " , ".join(map(json.dumps, labels)) + " ]",
    ],
)
def test_collections_that_python_prints_are_lists(written: Any) -> None:
    cells = [written([y, "odd"] if i % 3 else [y]) for i, y in enumerate(LABELS)]
    corpus = read_corpus(rows(text=TEXTS, tags=cells), label="tags", having="odd")
    assert [corpus.classes[y] for y in corpus.labels] == [
        "yes" if i % 3 else "no" for i in range(N)
    ]


def test_labels_that_are_objects_without_a_label_are_refused() -> None:
    for cells in ([{"negative": 0.1, "positive": 0.9}] * N, ['{"negative": 1}'] * N):
        with pytest.raises(InputError, match=r"are objects.* in a column of its own"):
            read_corpus(rows(text=TEXTS, label=cells), label="label")
    listed = rows(text=TEXTS, tags=[json.dumps([{"name": y}]) for y in LABELS])
    with pytest.raises(InputError, match=r"--label tags\.name"):
        read_corpus(listed, label="tags")
    corpus = read_corpus(listed, label="tags.name")
    assert [corpus.classes[y] for y in corpus.labels] == LABELS


@pytest.mark.parametrize("mark", [";", "|", ","])
def test_several_labels_in_a_cell_are_named(mark: str) -> None:
    joint = [f"{y}{mark} odd" if i % 4 < 2 else y for i, y in enumerate(LABELS)]
    (line,) = read_corpus((TEXTS, joint)).reading.lines()
    assert "2 labels" in line and options_of(f"audit {line[line.index('--') :]}")[1] == {
        "label_separator": mark
    }
    alone = [f"{y}{mark} {i % 2}" for i, y in enumerate(LABELS)]
    assert not read_corpus((TEXTS, alone)).reading.lines()


def test_dates_among_labels_are_named() -> None:
    labels = ["2024-01-02 00:00:00" if y == "negative" else "10-20" for y in LABELS]
    assert "spreadsheets turn text" in " ".join(read_corpus((TEXTS, labels)).reading.lines())


def test_an_annotator_without_annotations_is_refused() -> None:
    with pytest.raises(InputError, match="no annotation by 'kim'; the annotators are '0', '1'"):
        read_corpus(annotated([[y, y] for y in LABELS]), label="annotations.label", annotator="kim")


@pytest.mark.parametrize("hidden", ["N/A", "unknown", "-100"])
def test_one_label_that_only_test_rows_have_is_a_mark(hidden: str) -> None:
    data = [row | {"split": "train"} for row in PLAIN]
    data += [{"text": text, "label": hidden, "split": "test"} for text in TEXTS[:5]]
    corpus = read_corpus(data)
    assert corpus.test is None and hidden in " ".join(corpus.reading.lines())


def test_a_test_part_of_one_label_is_named() -> None:
    data = [row | {"split": "train"} for row in PLAIN]
    data += [{"text": text, "label": "negative", "split": "test"} for text in TEXTS[:5]]
    note = "all 5 test documents are labelled 'negative'"
    assert note in read_corpus(data).reading.detected


# ---- texts that are written in other ways


def test_chats_in_cells_are_chats_however_they_are_written() -> None:
    chats = [layouts.chat("hello", text) for text in TEXTS]
    numpy_style = ["[" + "\n ".join(map(str, chat)) + "]" for chat in chats]
    for cells in (list(map(json.dumps, chats)), list(map(str, chats)), numpy_style):
        corpus = read_corpus(rows(messages=cells, label=LABELS), role="assistant")
        assert corpus.texts.to_list() == TEXTS
    single = read_corpus(rows(message=[chat[1] for chat in chats], label=LABELS), text="message")
    assert single.texts.to_list() == TEXTS


def test_objects_where_a_text_belongs_name_the_field() -> None:
    data = rows(body=[{"lang": "en", "en": text} for text in TEXTS], label=LABELS)
    for options in ({}, {"text": "body", "label": "label"}):
        with pytest.raises(InputError, match=r"--text body\.en"):
            read_corpus(data, **options)
    assert read_corpus(data, text="body.en").texts.to_list() == TEXTS


def test_bytes_that_are_no_text_are_named_by_row() -> None:
    texts = [text.encode() for text in TEXTS]
    frame = pl.DataFrame({"text": texts, "label": LABELS})
    assert read_corpus(frame).texts.to_list() == TEXTS
    nested = frame.select(doc=pl.struct(body="text"), label="label")
    assert read_corpus(nested, text="doc.body").texts.to_list() == TEXTS
    texts[5] = b"caf\xe9"
    with pytest.raises(InputError, match="row 6: column 'text' contains bytes"):
        read_corpus(pl.DataFrame({"text": texts, "label": LABELS}), text="text")


@pytest.mark.parametrize(
    ("encoding", "word"), [("cp1251", "привет мир как дела"), ("shift_jis", "こんにちは世界")]
)
def test_words_of_another_script_among_english_ones(
    tmp_path: Path, encoding: str, word: str
) -> None:
    texts = [f"a story about the river and {word} number {i}" for i in range(N)]
    content = layouts.csv_bytes(rows(text=texts, label=LABELS)).decode().encode(encoding)
    corpus = read_corpus(write(tmp_path, "a.csv", content))
    assert corpus.texts.to_list() == texts and encoding in corpus.reading.detected[0]


def test_rows_that_quotes_hide_are_named_in_utf_16(tmp_path: Path) -> None:
    path = tsv_with_open_quotes(tmp_path)
    path.write_bytes(path.read_text(encoding="utf-8").encode("utf-16"))
    assert "lines 3 to 6" in " ".join(read_corpus(path).reading.detected)


def test_a_return_that_ends_a_row_is_no_part_of_it(tmp_path: Path) -> None:
    table = [[label, text] for label, text in zip(LABELS, TEXTS, strict=True)]
    content = lines_of(["label", "text"], *table).replace("\n", "\r")
    corpus = read_corpus(write(tmp_path, "mac.tsv", content))
    assert corpus.texts.to_list() == TEXTS and not corpus.reading.counts["trimmed"]


def test_class_names_of_an_arrow_stream(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    feature = {"names": {"1": "positive", "0": "negative"}, "_type": "ClassLabel"}
    metadata = {"huggingface": json.dumps({"info": {"features": {"label": feature}}})}
    table = arrow.table({"text": TEXTS, "label": [int(y == "positive") for y in LABELS]})
    table = table.replace_schema_metadata(metadata)
    path = tmp_path / "a.arrow"
    with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_stream(file, table.schema) as out:
        out.write_table(table)
    corpus = read_corpus(path)
    assert [corpus.classes[y] for y in corpus.labels] == LABELS


def test_a_role_is_for_conversations() -> None:
    with pytest.raises(InputError, match="--role is for conversations"):
        read_corpus(PLAIN, role="assistant")


def test_answers_without_a_score_are_counted() -> None:
    data = rows(prompt=PROMPTS, a=FIRST, b=SECOND, x=[3] * N, y=[1] * (N - 2) + ["", None])
    corpus = read_corpus(data, pairs=("a", "b"), scores=("x", "y"))
    assert "2 answers without a score" in " ".join(corpus.reading.detected)


# ---- what people report of other tools


def test_a_row_that_ends_with_a_separator_is_named(tmp_path: Path) -> None:
    table = [[text.replace(",", ""), label, ""] for text, label in zip(TEXTS, LABELS, strict=True)]
    path = write(tmp_path, "a.csv", lines_of(["text", "label"], *table, separator=","))
    with pytest.raises(
        InputError, match=r"row 1 .* ends with a separator, and the header does not"
    ):
        read_corpus(path)


def test_answers_in_objects_written_as_json_name_the_conversation() -> None:
    data = rows(
        chosen=[
            json.dumps({"messages": layouts.chat(p, a)}) for p, a in zip(PROMPTS, GOOD, strict=True)
        ],
        rejected=[
            json.dumps({"messages": layouts.chat(p, a)}) for p, a in zip(PROMPTS, BAD, strict=True)
        ],
    )
    with pytest.raises(InputError, match="objects") as caught:
        read_corpus(data, pairs=("chosen", "rejected"))
    corpus = read_corpus(data, **suggested(caught.value))
    assert corpus.texts.to_list()[::2] == GOOD and corpus.texts.to_list()[1::2] == BAD


def test_the_annotator_is_no_label_and_a_user_is_proposed_last() -> None:
    people = [i // 2 % 2 for i in range(N)]
    corpus = read_corpus(rows(text=TEXTS, annotator=people, choice=LABELS))
    assert corpus.reading.columns[1] == "choice"
    with pytest.raises(InputError, match="--label choice"):
        read_corpus(rows(text=TEXTS, user=people, choice=LABELS))


@pytest.mark.parametrize("mark", ["nan", "<NA>"])
def test_marks_of_pandas_may_mean_no_label(mark: str) -> None:
    (line,) = read_corpus(
        (TEXTS, [mark if i < 4 else y for i, y in enumerate(LABELS)])
    ).reading.lines()
    assert mark in line and "--drop" in line

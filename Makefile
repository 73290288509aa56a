# Two commands on a fresh machine: `make demo` and `make test`. Both make .venv from the locked dependencies first.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all lint bench lock clean

demo: .deps-run
	$(BIN)/tokensieve demo --out tokensieve-demo

test: .deps-test chromium
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q

test-all: test
	$(BIN)/pytest -q -m slow

.deps-run: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install -q --disable-pip-version-check --no-deps -e .
	touch $@

.deps-test: requirements-test.lock .deps-run
	$(BIN)/pip install -q --disable-pip-version-check -r requirements-test.lock
	touch $@

# the page is tested in a real browser where one can be had; without it those tests skip and say so
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "no chromium: the browser tests will skip"

lock: .deps-run
	$(BIN)/pip install -q -e . && $(BIN)/pip freeze --exclude-editable

clean:
	rm -rf $(VENV) .deps-run .deps-test

# On a fresh machine start with `make demo` or `make test`. Both create .venv from the locked dependencies first.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-browser test-all docs gallery bench reproduced lock clean audit-dependencies sbom

TORCH := torch==2.13.0

demo: .deps-run
	$(BIN)/tokensieve demo --out tokensieve-demo

# without pytest's rewriting of assertions the first test starts in half the time; tests that fail run again with it
PYTEST := $(BIN)/pytest -q -n auto --maxprocesses 4 --dist loadfile

# lint, types, the fast tests, the eighth of the slow tests that this commit chooses, and the tests in a browser
test: .deps-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) --eighth --assert=plain || { $(PYTEST) --eighth --last-failed; false; }
	$(MAKE) test-browser

# pages in a real browser; where none can be installed these tests are skipped and say so
test-browser: .deps-test chromium
	$(PYTEST) --eighth -m browser --assert=plain || { $(PYTEST) --eighth -m browser --last-failed; false; }

# everything: all slow tests, and every property on eight times as many examples
test-all: test
	POLARS_MAX_THREADS=4 $(PYTEST) -m "slow or hypothesis" --hypothesis-profile=thorough

# the documentation site, offline and strict: a broken link or reference fails
docs: .deps-test
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build

# every page of docs/gallery.md and its screenshot, from the data sets in ../shared/data
gallery: .deps-test chromium
	$(BIN)/python docs/gallery.py

# this version beside the last release: fails where a command became more than 15% slower; minutes on a quiet machine
bench: .deps-test
	$(BIN)/python benchmarks/release.py

# docs/reproduced.md from one run: every experiment and reading over seeds. What is finished is not run again. SCALE=paper takes
# hours; both scales are on the page where both have been run
SCALE ?= quick
REPRODUCED := tokensieve-reproduce
reproduced: .deps-test
	$(BIN)/tokensieve reproduce --data ../shared/data --scale $(SCALE) --reading all --out $(REPRODUCED)-$(SCALE)
	$(BIN)/python benchmarks/reproduced.py $$(ls -d $(REPRODUCED)-quick $(REPRODUCED)-paper 2>/dev/null)

.deps-run: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# torch comes first, because with hashes pip would take the file of the index although another build
# is preferred here; its hash is compared with the lock, too. The last step installs what the build
# on PyPI needs besides.
.deps-test: requirements-test.lock .deps-run
	$(BIN)/pip list --format=freeze | grep '^$(TORCH)' > /dev/null || { rm -rf $(VENV)/torch && \
	  $(BIN)/pip download -q --disable-pip-version-check --no-deps -d $(VENV)/torch $(TORCH) && \
	  grep -q -e "$$($(BIN)/pip hash $(VENV)/torch/torch-*.whl | tail -1)" requirements-test.lock && \
	  $(BIN)/pip install -q --disable-pip-version-check --no-deps --no-index \
	  --find-links $(VENV)/torch $(TORCH); }
	rm -rf $(VENV)/torch
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements-test.lock
	$(BIN)/pip install -q --disable-pip-version-check $(TORCH)
	touch $@

.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "no chromium: the browser tests will skip"

# Newest versions that satisfy pyproject.toml, written down with the hashes of all their files on the
# index. torch stays at one version. Its build without GPU packages (+cpu, as on our machines) has
# another file than the one on PyPI: the hash of the build that is found here is added. The build on
# PyPI needs GPU packages, which are not locked: the last step of .deps-test installs them.
HASHED := .lock-env/bin/uv pip compile -q --generate-hashes --no-deps --no-header --no-annotate
lock:
	rm -rf .lock-env && $(PYTHON) -m venv .lock-env
	.lock-env/bin/pip install -q 'setuptools>=77' wheel && .lock-env/bin/pip install -q -e .
	.lock-env/bin/pip freeze --all --exclude-editable | grep -v '^pip==' > .lock-env/run.in
	.lock-env/bin/pip install -q $(TORCH) && .lock-env/bin/pip install -q -e '.[test]'
	.lock-env/bin/pip freeze --all --exclude-editable | grep -Ev '^(pip|nvidia-.*|triton)==' | \
	  sed 's/+cpu//' > .lock-env/test.in
	.lock-env/bin/pip download -q --no-deps -d .lock-env $(TORCH)
	.lock-env/bin/pip install -q uv==0.13.9
	$(HASHED) .lock-env/run.in -o requirements.lock
	$(HASHED) .lock-env/test.in -o requirements-test.lock
	hash=$$(.lock-env/bin/pip hash .lock-env/torch-*.whl | tail -1) && \
	  sed -i "s/^$(TORCH) .*/&\n    $$hash \\\\/" requirements-test.lock
	rm -rf .lock-env

# known vulnerabilities of the locked versions, and a list of what is installed (CycloneDX), for a release
.tools/bin/python:
	$(PYTHON) -m venv .tools
	.tools/bin/pip install -q --disable-pip-version-check pip-audit==2.10.1 cyclonedx-bom==7.5.0

audit-dependencies: .tools/bin/python
	.tools/bin/pip-audit --disable-pip --no-deps -r requirements.lock

sbom: .deps-run .tools/bin/python
	mkdir -p dist
	.tools/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible -o dist/sbom.json $(BIN)/python

clean:
	rm -rf $(VENV) .deps-run .deps-test

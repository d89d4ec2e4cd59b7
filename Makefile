# Every target works on a machine that has Python 3.11 or newer, and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Of PyTorch pip takes the build with GPU libraries, 2.6 GB, where it is told of
# no other; it runs without a GPU too. Without `backends` the tests of the other
# backends are skipped.
EXTRAS ?= test,lint,tfds,scann,onnx,serving,beam,backends,browser,hub,tuning,docs

# Two processes, each of whole files, in the order of tests/conftest.py.
TESTS := -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-all lint docs bench versions release tag clean

demo: $(VENV)/.installed
	$(BIN)/keras-dml fit glyphs --epochs 2 --output runs/demo --resume

# Without damaged input; of a quick test with many cases one in ten.
test: $(VENV)/.installed-quick
	$(BIN)/python $(TESTS) -m "not slow" --quick-alike 10 --ignore tests/hostile

# Of the cases of a slow test with many, such as a law of all losses, a third.
# A slow machine may need hours: slow tests that have not begun in time are
# skipped, and the summary has their places.
ALIKE ?= 3
MINUTES ?= 30
test-all: $(VENV)/.installed-test
	$(BIN)/python $(TESTS) --alike $(ALIKE) --minutes $(MINUTES)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-test
	$(BIN)/python benchmarks/run.py

# The wheel with the oldest, Colab's, the newest and no TensorFlow. `oldest` needs
# Python 3.11: later ones have no such old numpy.
CASES ?= oldest colab newest jax
versions: $(VENV)/bin/python
	for case in $(CASES); do \
		$(BIN)/python tests/versions.py $$case || exit 1; \
	done

# A dry run: builds and checks what a tag `v0.2.0` would publish.
TAG ?= v$(shell sed -n 's/__version__ = "\(.*\)"/\1/p' keras_dml/version.py)
release: tag $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	@echo "Ready: git tag $(TAG) && git push origin $(TAG)"

# The tag is the version of the package; one that is given publishes, and so needs
# its date in CHANGELOG.md.
DATED := $(if $(filter command,$(origin TAG)),[ ]([0-9-]*)$$)
tag:
	grep -q '__version__ = "$(TAG:v%=%)"' keras_dml/version.py
	grep -q '^## $(TAG:v%=%)$(DATED)' CHANGELOG.md

# The site, in build/site; a warning is an error.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist *.egg-info

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(VENV)/bin/python setup.py
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-quick: $(VENV)/bin/python setup.py
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@ $(VENV)/.installed

$(VENV)/.installed-test: $(VENV)/bin/python setup.py
	$(BIN)/python -m pip install --quiet --editable ".[$(EXTRAS)]"
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: $(VENV)/bin/python setup.py
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@ $(VENV)/.installed

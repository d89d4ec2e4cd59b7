# Every target works on a machine that has Python 3.11 or newer, and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Of PyTorch pip takes the build with GPU libraries, 2.6 GB, where it is told of
# no other; it runs without a GPU too. Without `backends` the tests of the other
# backends are skipped.
EXTRAS ?= test,scann,onnx,serving,beam,backends,browser,hub,tuning

.PHONY: demo test test-all lint bench clean

demo: $(VENV)/.installed
	$(BIN)/keras-dml fit digits --output runs/demo --resume

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile -m "not slow"

test-all: $(VENV)/.installed-test
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-test
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) build dist *.egg-info

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(VENV)/bin/python setup.py
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/bin/python setup.py
	$(BIN)/python -m pip install --quiet --editable ".[$(EXTRAS)]"
	touch $@ $(VENV)/.installed

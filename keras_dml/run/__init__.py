"""The parts of one run: its folder, state, data, phases and checkpoints."""

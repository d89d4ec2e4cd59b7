"""Whether tests take hours, or a part of the same that takes minutes."""

import os

ALL = os.environ.get("KERAS_DML_TEST_ALL") == "1"

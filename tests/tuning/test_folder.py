from keras_dml.tuning.folder import Worker


def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path):
    (tmp_path / "of_a_killed_one.lock").touch()
    living, other = Worker(tmp_path), Worker(tmp_path)
    names = {"all.lock", f"{living.name}.lock", f"{other.name}.lock"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert other.lives(living.name)
    living.close()
    assert not other.lives(living.name)
    other.close()
    assert [path.name for path in tmp_path.iterdir()] == ["all.lock"]

import pytest

from keras_dml.comparison.check import check_finished, check_jobs
from keras_dml.comparison.compare import compare
from keras_dml.comparison.jobs import make_jobs
from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.comparison.plans import make_plan
from keras_dml.config.plans import parse_plan
from keras_dml.data import readers
from keras_dml.errors import UsageError
from keras_dml.run.data import split_data
from keras_dml.run.settling import settle
from tests.comparison.scripted import RESULTS
from tests.images import image_folder


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """24 classes of 4 images; 12 train."""
    return image_folder(
        tmp_path_factory.mktemp("images") / "paint",
        classes=24,
        images=4,
        size=16,
        suffix=".png",
    )


def checked(source, **values):
    plan = parse_plan(
        {
            "title": "T",
            "sources": [str(source)],
            "recipes": ["norm_softmax", "triplet"],
            "backbones": ["small_cnn"],
            "protocol": {"kind": "recipe"},
            **values,
        }
    )
    return check_jobs(make_jobs(plan), plan.protocol)


def test_the_work_of_a_run_is_counted(images):
    jobs = checked(
        images,
        budget={"epochs": 6, "steps_per_epoch": 5},
        protocol={"kind": "cross_validation", "folds": 3},
        set={"evaluation.every": 2},
    )
    assert {job.work.steps for job in jobs} == {30}
    # 16 images are embedded 3 times, and the 48 test images as well.
    assert {job.work.tested / job.work.validated for job in jobs} == {3}
    (job, *_) = checked(images, budget={"epochs": 6, "steps_per_epoch": 5})
    # Without validation classes nothing is measured on the way.
    assert (job.work.steps, job.work.validated) == (30, 0)
    # A step may ask for 64, but no more than 48 images train.
    assert job.work.kind == ("small_cnn", 16, 48)


def test_few_classes_make_a_small_step(images):
    """The images that the settings ask for were counted."""
    sampling = {"kind": "balanced", "images": 2, "batch_size": 64}
    jobs = checked(
        images, set={f"sampling.{key}": sampling[key] for key in sampling}
    )
    assert {job.work.batch for job in jobs} == {24}


def test_weights_of_the_records_are_settled(images):
    assert {job.record.weights for job in checked(images)} == {"none"}
    jobs = checked(
        images, backbones=["mobilenet_v2"], set={"data.image_size": 32}
    )
    assert {job.record.weights for job in jobs} == {"imagenet"}
    path = "somewhere/mobilenet.weights.h5"
    jobs = checked(
        images,
        backbones=["mobilenet_v2"],
        weights=path,
        set={"data.image_size": 32},
    )
    assert {job.record.weights for job in jobs} == {"mobilenet.weights.h5"}


def test_more_folds_than_classes(images):
    with pytest.raises(UsageError, match=r"Use at most 6 folds.*14 of 14"):
        checked(images, protocol={"kind": "cross_validation", "folds": 7})


def test_an_empty_validation_split(images):
    with pytest.raises(UsageError, match="validation split is empty"):
        checked(images, protocol={"kind": "fixed_validation"})
    checked(
        images,
        protocol={"kind": "fixed_validation"},
        set={"evaluation.select": "last"},
    )


def test_images_validate_where_too_few_classes_train():
    jobs = checked("digits", protocol={"kind": "fixed_validation"})
    assert {job.config.data.validation_images for job in jobs} == {0.1}
    assert all(job.work.validated > 0 for job in jobs)


def test_all_mistakes_at_once(images, tmp_path):
    with pytest.raises(UsageError) as caught:
        checked(
            images,
            sources=[str(images), "cars196"],
            backbones=["small_cnn", "resnet5"],
            data_dir=str(tmp_path),
            set={"loss.0.arguments": {"sclae": 3}},
        )
    mistakes = str(caught.value).splitlines()
    text = "\n".join(mistakes)
    assert "'resnet5'" in text
    assert "cars196" in text
    assert "`loss.0.arguments`" in text
    assert text.count("'resnet5'") == 1


def finish(place, job):
    """Leaves what a run leaves: with what it has settled, and its results."""
    data = split_data(readers.read(job.config.data.source), job.config)
    run = place.run(job)
    every = job.config.evaluation.every or 1
    run.create(settle(job.config, data).changed(evaluation={"every": every}))
    run.write_metrics(RESULTS)


@pytest.mark.parametrize("kind", ["recipe", "fixed_validation"])
def test_what_a_run_has_settled_is_no_difference(tmp_path, kind):
    changes = {"evaluation.every": None}
    jobs = checked("digits", protocol={"kind": kind}, set=changes)
    place = PlanFolder(tmp_path)
    for job in jobs:
        finish(place, job)
        assert place.run(job).load_config() != job.config
    check_finished(jobs, place)


def test_finished_runs_of_other_settings_are_refused(tmp_path):
    """A recipe is edited between two commands, the second with more seeds."""
    recipe, folder = tmp_path / "mine.yaml", tmp_path / "plan"
    options = {"recipes": [str(recipe)], "protocol": "recipe"}

    def edit(scale):
        text = f"base: norm_softmax\ndefault:\n  model: {{scale: {scale}}}\n"
        recipe.write_text(text)

    edit(8.0)
    plan, _ = make_plan("digits", options | {"seeds": 2})
    jobs = make_jobs(plan)
    with PlanFolder(folder) as place:
        place.open(plan)
        for job in jobs:
            finish(place, job)
    more = options | {"seeds": 3, "dry_run": True}
    assert compare("digits", folder, **more).count("done") == 2

    edit(32.0)
    with pytest.raises(UsageError) as caught:
        compare("digits", folder, **more)
    text = str(caught.value)
    assert f"{jobs[0].run} was started with other settings" in text
    assert "`model.scale` was 8.0, received 32.0" in text
    assert "choose another `output`" in text
    assert f"delete this folder. The same holds for `{jobs[1].run}`." in text
    for job in jobs:
        place.run(job).metrics.unlink()
    assert compare("digits", folder, **more).count("to do") == 3


def test_only_runs_that_are_left_need_their_weights(images, tmp_path):
    """A dry run said of a missing file that all was well."""
    folder, weights = tmp_path / "plan", tmp_path / "gone.weights.h5"
    options = {"recipes": ["norm_softmax"], "protocol": "recipe", "seeds": 1}
    options |= {"backbones": ["small_cnn"], "weights": str(weights)}
    with pytest.raises(UsageError, match="`weights` must name a file that ex"):
        compare(str(images), folder, dry_run=True, **options)
    assert not folder.exists()

    plan, _ = make_plan(str(images), options)
    with PlanFolder(folder) as place:
        place.open(plan)
        for job in make_jobs(plan):
            finish(place, job)
    again = compare(str(images), folder, dry_run=True, **options)
    assert again.count("done") == 1


def test_a_finished_run_that_cannot_be_read_is_named(tmp_path):
    (job, *_) = jobs = checked("digits")
    place = PlanFolder(tmp_path)
    finish(place, job)
    with open(place.run(job).record, "a", encoding="utf-8") as record:
        record.write("former: 3\n")
    with pytest.raises(UsageError, match=f"{job.run}: .*`former`.*delete this"):
        check_finished(jobs, place)


def test_weights_that_must_be_converted_are_asked_for_first(images, tmp_path):
    """Every run failed by itself."""
    options = {"recipes": ["norm_softmax"], "backbones": ["bn_inception"]}
    with pytest.raises(UsageError, match="public for another framework only"):
        compare(str(images), tmp_path / "plan", dry_run=True, **options)

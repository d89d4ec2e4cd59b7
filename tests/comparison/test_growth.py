import pytest

from keras_dml.comparison.growth import additions, grown
from keras_dml.comparison.jobs import make_jobs
from keras_dml.comparison.plans import make_plan
from keras_dml.config.plans import parse_plan
from keras_dml.errors import UsageError

OPTIONS = {"recipes": ["ln", "bn"], "protocol": "recipe", "epochs": 1}


def plan(source="digits", **options):
    return make_plan(source, OPTIONS | options)[0]


def shoes(**values):
    return parse_plan(
        {"title": "Shoes", "sources": ["a/shoes"], "recipes": ["ln"], **values}
    )


def test_the_same_plan_stays_the_same():
    for name in ("demo", "omniglot_k_max", "deck_tournament"):
        whole = make_plan(name)[0]
        assert grown(whole, whole) == whole
        part = make_plan(name, {"seeds": whole.seeds[:1]})[0]
        assert grown(whole, part) == whole
        assert additions(whole, whole) == ""


@pytest.mark.parametrize(
    ("changes", "in_words", "runs"),
    [
        ({"seeds": 2}, "seed 1", 4),
        ({"recipes": ["triplet"]}, "`triplet`", 3),
        (
            {"recipes": ["ln", "bn", "triplet"], "seeds": [0, 7]},
            "`triplet` and seed 7",
            6,
        ),
    ],
)
def test_what_is_added_joins_and_the_rest_stays(changes, in_words, runs):
    stored = plan()
    whole = grown(stored, plan(**changes))
    assert additions(stored, whole) == in_words
    before, after = make_jobs(stored), make_jobs(whole)
    assert len(after) == runs
    assert {job.run: job.config for job in before}.items() <= {
        job.run: job.config for job in after
    }.items()


def test_further_data_and_arms_join():
    stored = shoes(arms=[{"name": "wide", "set": {"model.dim": 512}}])
    given = shoes(
        sources=["b/boots"],
        arms=[{"name": "narrow", "set": {"model.dim": 8}}],
        cases=[{"sources": ["b/boots"], "set": {"evaluation.every": 2}}],
        seeds=[3],
    )
    whole = grown(stored, given)
    assert additions(stored, whole) == "`narrow`, boots and seed 3"
    assert len(make_jobs(whole)) == 8
    assert grown(whole, stored) == whole


def test_a_plan_grows_one_data_set_after_the_other():
    first, second = (
        make_plan("deck_tournament", {"source": source})[0]
        for source in ("cub200", "cars196")
    )
    whole = grown(first, second)
    assert whole.sources == ["cub200", "cars196"]
    both = make_plan("deck_tournament")[0]
    assert {job.run for job in make_jobs(whole)} == {
        job.run for job in make_jobs(both)
    }


def test_a_further_path_to_the_same_data_is_no_further_data(
    tmp_path, monkeypatch
):
    (tmp_path / "shoes").mkdir()
    monkeypatch.chdir(tmp_path)
    whole = str(tmp_path / "shoes")
    given = plan(whole, seeds=2)
    # Plans of version 0.1 kept paths as they were given.
    case = {"sources": ["shoes"]}
    stored = given.model_dump() | {"sources": ["shoes"], "cases": [case]}
    both = grown(parse_plan(stored), given)
    assert both.sources == both.cases[0].sources == [whole]
    assert grown(plan("shoes"), given).sources == [whole]


def test_titles_follow_the_recipes_unless_somebody_wrote_them():
    third = plan(recipes=["triplet"])
    assert grown(plan(), third).title == "ln, bn, triplet on digits"
    written = shoes(sources=["digits"])
    assert grown(written, plan("digits", epochs=None, protocol=None)).title == (
        "Shoes"
    )


PARTS = [
    ("proxynca_pp_table7", {"arms": ["ProxyNCA++", "-scale"]}),
    ("heated_up_tables1_4", {"source": "cub200", "arms": ["BN", "LN"]}),
    ("proxynca_pp_tables12_13", {"source": "cub200"}),
    ("deck_tournament", {"source": "cars196", "backbones": ["bn_inception"]}),
    ("omniglot_k_max", {"seeds": [0]}),
]


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_a_part_of_a_plan_takes_nothing_away(name, part):
    """No run, no finding and no printed number of the folder."""
    whole = make_plan(name)[0]
    assert whole.findings or whole.paper_values
    few = make_plan(name, part)[0]
    assert grown(whole, few) == whole
    again = grown(few, whole)
    assert again.findings == whole.findings
    assert again.paper_values == whole.paper_values


def test_parts_of_a_plan_bring_their_findings_and_printed_numbers():
    name, values = "proxynca_pp_table7", {}
    whole = make_plan(name)[0]
    for arm in ("ProxyNCA++", "-scale", "-max"):
        own = make_plan(name, {"arms": [arm]})[0]
        values = grown(values, own) if values else own
    (table,) = values.paper_values
    assert [*table.values] == ["ProxyNCA++", "-scale", "-max"]
    assert table.values["-max"] == whole.paper_values[0].values["-max"]


def test_findings_on_one_data_set_stay_when_another_is_given():
    claim = {"claim": "C", "better": ["ln"], "than": ["bn"]}
    values = {"title": "T", "recipes": ["ln", "bn"]}
    first, second = (
        parse_plan(
            values
            | {"sources": [data], "findings": [{**claim, "sources": [data]}]}
        )
        for data in ("digits", "glyphs")
    )
    both = grown(first, second)
    assert [one.sources for one in both.findings] == [["digits"], ["glyphs"]]
    # What a stored finding says of these data already is not said twice.
    wide = {**claim, "sources": ["digits", "glyphs"]}
    stored = parse_plan(both.model_dump() | {"findings": [wide]})
    assert grown(stored, second) == stored


def test_a_finding_that_is_given_in_other_words_replaces_the_stored_one():
    def plan_with(recipes, claim, metric, value):
        finding = {"claim": claim, "better": ["ln"], "than": ["bn"]}
        table = {"where": "W", "source": "digits"}
        return parse_plan(
            {
                "title": "T",
                "sources": ["digits"],
                "recipes": recipes,
                "findings": [finding | {"metric": metric}],
                "paper_values": [table | {"values": {"ln": {metric: value}}}],
            }
        )

    stored = plan_with(["ln", "bn", "triplet"], "Old.", "map@r", 0.4)
    given = plan_with(["ln", "bn"], "New.", "recall@1", 0.5)
    both = grown(stored, given)
    assert both.findings == given.findings
    assert both.paper_values == given.paper_values


def test_rows_of_a_grid_keep_their_findings():
    """One arm alone is named after the grid, among others after both."""
    grid = {"model.scale": [4.0, 16.0]}
    rows = ["ln, scale 4.0", "ln, scale 16.0"]
    finding = {"claim": "C", "better": rows[:1], "than": rows[1:]}
    printed = {"where": "W", "source": "digits", "values": {}}
    printed["values"] = {rows[0]: {"map@r": 0.5}, "bn": {"map@r": 0.4}}
    stored = parse_plan(
        {
            "title": "T",
            "sources": ["digits"],
            "recipes": ["ln", "bn"],
            "grid": grid,
            "findings": [finding],
            "paper_values": [printed],
        }
    )
    few = make_plan(stored, {"arms": ["ln"]})[0]
    (claim,), (table,) = few.findings, few.paper_values
    assert (claim.better, claim.than) == (["scale 4.0"], ["scale 16.0"])
    assert [*table.values] == ["scale 4.0"]
    assert make_jobs(few)
    assert grown(stored, few) == stored


def test_rows_keep_their_names_in_whatever_order_a_grid_is_given():
    def plan_with(seeds, *grid):
        named = [{"model.scale": "scale", "model.k": "k"}[key] for key in grid]
        row = f"{named[0]} 1, {named[1]} 1"
        finding = {"claim": "C", "better": [row], "than": [row]}
        values = {"title": "T", "sources": ["digits"], "recipes": ["ln"]}
        both = {"grid": {key: [1] for key in grid}, "findings": [finding]}
        return parse_plan({**values, **both, "seeds": seeds})

    stored = plan_with([0], "model.scale", "model.k")
    whole = grown(stored, plan_with([1], "model.k", "model.scale"))
    assert (whole.seeds, whole.findings) == ([0, 1], stored.findings)


def test_a_plan_corrects_the_names_in_the_plan_of_its_folder():
    """Version 0.1 did not check rows of a grid, nor metrics."""
    values = {
        "title": "T",
        "sources": ["digits"],
        "recipes": ["ln", "bn"],
        "grid": {"model.scale": [4.0]},
    }
    wrong = {"claim": "C", "better": ["ln"], "than": ["bn"]}
    right = wrong | {"better": ["ln, scale 4.0"], "than": ["bn, scale 4.0"]}
    stored = {"metrics": ["recal@1"], "findings": [wrong]}
    given = {"metrics": ["recall@1"], "findings": [right]}
    given = parse_plan(values | given)
    assert grown(parse_plan(values | stored), given) == given


def test_words_about_the_runs_follow_the_last_command():
    claim = {"claim": "ln is better", "better": ["ln"], "than": ["ln"]}
    stored = shoes(findings=[claim], about="First.")
    assert grown(stored, shoes(seeds=[1])).findings == stored.findings
    assert grown(stored, shoes(about="Second.")).about == "Second."


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"epochs": 5}, "`epochs` was 1, received 5"),
        ({"epochs": None}, "`epochs` was 1, received not given"),
        ({"steps_per_epoch": 9}, "`steps_per_epoch` was not given, received 9"),
        ({"protocol": "oracle"}, "`protocol` was recipe, received oracle"),
        ({"backbones": ["resnet50"]}, "`backbones` was not given, received"),
        ({"dims": [8, 16]}, "`dims` was not given, received 8, 16"),
        ({"weights": "none"}, "`weights` was not given, received none"),
        ({"set": ["model.dim=8"]}, "`set.model.dim` was not given, received 8"),
    ],
)
def test_what_every_run_shares_does_not_change(changes, named):
    given = {**OPTIONS, "seeds": 2, **changes}
    with pytest.raises(UsageError) as error:
        grown(plan(), make_plan("digits", given)[0])
    assert named in str(error.value)
    assert "choose another `output`" in str(error.value)
    assert "None" not in str(error.value)
    assert "[" not in str(error.value)


def test_added_lists_are_said_in_words():
    stored = shoes(grid={"evaluation.k": [[1, 2]]})
    whole = grown(stored, shoes(grid={"evaluation.k": [[1, 4]]}))
    assert additions(stored, whole) == "evaluation.k 1, 4"


def test_an_arm_keeps_its_settings():
    stored = shoes(arms=[{"name": "wide", "set": {"model.dim": 512}}])
    given = shoes(arms=[{"name": "wide", "set": {"model.dim": 256}}])
    with pytest.raises(UsageError, match="was 512, received 256"):
        grown(stored, given)


def test_runs_keep_their_settings_and_their_names():
    case = {"set": {"evaluation.every": 2}}
    with pytest.raises(UsageError, match="change or rename .*-ln-seed0`"):
        grown(shoes(), shoes(cases=[case]))
    # The runs of a grid of one arm are named after the grid alone.
    grid = {"model.dim": [8, 16]}
    with pytest.raises(UsageError, match="change or rename .*dim_16-seed0`"):
        grown(shoes(grid=grid), shoes(grid=grid, recipes=["bn"]))
    whole = grown(shoes(grid=grid), shoes(grid={"model.dim": [32]}))
    assert whole.grid == {"model.dim": [8, 16, 32]}


def test_a_mistyped_recipe_is_named_in_spite_of_other_changes():
    with pytest.raises(UsageError, match="Nearest: 'triplet'"):
        grown(plan(), plan(recipes=["tripplet"], epochs=9))

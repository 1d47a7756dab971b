# %% [markdown]
# Figure 5 of "Positional Attention: Out-of-Distribution Generalization and Expressivity for Neural Algorithmic Reasoning",
# scaled down to seconds: trained on numbers from -2 to 2, which network is right about larger ones?
# Runs as a script, or cell by cell in an editor that knows `# %%`. It trains on this machine and needs no server:
#
#     python python/examples/positional_attention.py

# %%
import lengthwise

experiment = lengthwise.run(
    {
        "name": "positional",
        "protocol": "positional_attention",
        "tasks": ["cumulative_sum", "cumulative_min"],
        "networks": [
            {"name": "positional_attention", "blocks": 3, "d_model": 32, "label": "positional"},
            {
                "name": "positional_attention", "attention_by": "input", "input_positions": True, "blocks": 3, "d_model": 32,
                "label": "standard",
            },
        ],
        "learning_rates": 2e-3,
        "seeds": [0, 1],
        "training": {"epochs": 20, "examples": 2000, "batch_size": 64, "report_every_steps": 10},
        "evaluation": {
            "lengths": "1..5", "sequences": 200, "every_steps": 160, "interval_lengths": [1, 3], "attention_lengths": [1, 3],
        },
    },
    data_dir="runs",
)  # fmt: skip

# %% Mean squared error by the scale of the numbers, median over the seeds. Scale 1 is training's.
errors = experiment.accuracies()
print(errors.pivot_table(index=["task", "network"], columns="length", values="loss", aggfunc="median").round(2))

# %% The same as a figure: a panel a task, bands from the 10th to the 90th percentile.
experiment.plot.accuracy_by_length().savefig("error_by_scale.svg")

# %% Training loss of every trial, no point averaged away.
experiment.plot.loss(seeds="all", smooth=1).savefig("loss.svg")

# %% How many times larger the error is at scale 5 than at scale 1.
last, first = (errors[errors["length"] == scale].set_index(["task", "network", "trial"])["loss"] for scale in (5, 1))
print((last / first).groupby(["task", "network"]).median().round(1).to_string())

# %% Beside the numbers read off the paper's figure.
table = experiment.compare("positional_attention/figure_5").dropna(subset="measured")
print(table.attrs["heading"])
print(table[["row", "column", "measured", "published"]].round(2).to_string(index=False))

# %% Tables for R or a spreadsheet.
print(experiment.export("csv", "tables", force=True))
print(experiment.report("positional.html"))

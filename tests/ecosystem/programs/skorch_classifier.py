"""skorch: a classifier of scikit-learn made of a module, in a pipeline and a grid search."""

import pickle

import numpy
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EarlyStopping, EpochScoring, LRScheduler
from torch import nn

x, y = make_classification(200, 20, n_informative=10, random_state=0)
x, y = x.astype(numpy.float32), y.astype(numpy.int64)


class Net(nn.Module):
    def __init__(self, units=10, act=nn.ReLU()):  # noqa: B008
        super().__init__()
        self.dense0 = nn.Linear(20, units)
        self.act = act
        self.dropout = nn.Dropout(0.5)
        self.dense1 = nn.Linear(units, units)
        self.output = nn.Linear(units, 2)

    def forward(self, rows):
        rows = self.dropout(self.act(self.dense0(rows)))
        return self.output(self.act(self.dense1(rows))).softmax(-1)


torch.manual_seed(0)
net = NeuralNetClassifier(
    Net,
    max_epochs=5,
    lr=0.1,
    iterator_train__shuffle=True,
    callbacks=[
        EarlyStopping(patience=4),
        LRScheduler("StepLR", step_size=2),
        EpochScoring("roc_auc", name="auc"),
    ],
    verbose=0,
)
pipeline = Pipeline([("scale", StandardScaler()), ("net", net)])
pipeline.fit(x, y)
print("train", *net.history[:, "train_loss"])
print("valid", *net.history[:, "valid_loss"])
print("auc", *net.history[:, "auc"])
print("proba", *pipeline.predict_proba(x[:3]).flatten())
again = pickle.loads(pickle.dumps(net))
print("pickled", int(numpy.array_equal(again.predict_proba(x), net.predict_proba(x))))
torch.manual_seed(1)
search = GridSearchCV(
    NeuralNetClassifier(Net, max_epochs=2, train_split=False, verbose=0),
    {"lr": [0.01, 0.1], "module__units": [5, 10]},
    cv=2,
    scoring="accuracy",
    refit=False,
)
search.fit(x, y)
print("search", *search.cv_results_["mean_test_score"])
torch.manual_seed(2)
line = NeuralNetRegressor(nn.Linear, module__in_features=20, module__out_features=1, verbose=0)
line.fit(x, y.astype(numpy.float32)[:, None])
print("line", *line.history[:, "train_loss"])

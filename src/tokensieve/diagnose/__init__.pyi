"""Public names and where they are defined; `lazy_loader` reads this file on import."""

from .callback import DiagnoseCallback as DiagnoseCallback
from .comparing import compare as compare
from .comparison import Comparison as Comparison
from .diagnosis import Diagnosis as Diagnosis
from .run import diagnose as diagnose
from .run import diagnose_corpus as diagnose_corpus
from .settings import DiagnoseSettings as DiagnoseSettings
from .subjects.label_words import LabelWords as LabelWords
from .subjects.loading import load as load

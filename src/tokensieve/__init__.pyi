"""Public names and where they are defined.

`lazy_loader` reads this file when the package is imported.
"""

from .auditing.compare import AuditComparison as AuditComparison
from .auditing.compare import compare_audits as compare_audits
from .auditing.dataset_card import dataset_card as dataset_card
from .auditing.demo import demo_pairs as demo_pairs
from .auditing.demo import demo_reviews as demo_reviews
from .auditing.masking import mask_texts as mask_texts
from .auditing.result import Audit as Audit
from .auditing.review_export import export_rows as export_rows
from .auditing.review_export import rows_to_review as rows_to_review
from .auditing.run import audit as audit
from .auditing.scores.run import audit_scores as audit_scores
from .auditing.settings import Budget as Budget
from .auditing.settings import Settings as Settings
from .diagnose.diagnosis import Diagnosis as Diagnosis
from .diagnose.settings import DiagnoseSettings as DiagnoseSettings
from .errors import InputError as InputError
from .evidence.importance import Category as Category
from .evidence.importance import Importance as Importance
from .evidence.importance import importance_of as importance_of
from .evidence.importance import token_importance as token_importance
from .evidence.sums import TokenSums as TokenSums
from .model.attention import Gradient as Gradient
from .model.attention import Model as Model
from .model.attention import gradient as gradient
from .model.attention import logits as logits
from .model.classifier import AttentionClassifier as AttentionClassifier
from .model.classifier import load_model as load_model
from .model.explanation import Explanation as Explanation
from .model.explanation import compare as compare
from .model.fit import fit as fit
from .model.regressor import AttentionRegressor as AttentionRegressor
from .model.settings import TrainSettings as TrainSettings
from .model.storage import model_files as model_files
from .model.storage import read_model as read_model
from .model.storage import table as table
from .ranking.run import rank as rank
from .ranking.settings import RankSettings as RankSettings
from .read.corpus import Corpus as Corpus
from .read.pairs import read_pairs as read_pairs
from .read.reader import read_corpus as read_corpus
from .read.split import split_corpus as split_corpus
from .report.html import render as render
from .report.writer import pictures as pictures
from .report.writer import save as save
from .task.cluster import learn_on as learn_on
from .text.counts import Counts as Counts
from .text.pieces import PieceTokenizer as PieceTokenizer
from .text.tokenizers import WordTokenizer as WordTokenizer
from .text.vocabulary import Vocabulary as Vocabulary
from .text.vocabulary import count_corpus as count_corpus
from .text.vocabulary import count_texts as count_texts
from .text.vocabulary import learn_vocabulary as learn_vocabulary
from .text.vocabulary import tokenize as tokenize
from .theory.embeddings import Training as Training
from .theory.embeddings import TrainingSettings as TrainingSettings
from .theory.embeddings import initialise as initialise
from .theory.embeddings import train_embeddings as train_embeddings
from .theory.flow.solve import gradient_flow as gradient_flow
from .theory.limit.margin import max_margin as max_margin
from .theory.one_step import one_step as one_step
from .theory.settings import VerifySettings as VerifySettings
from .theory.verify import verify as verify

__version__: str

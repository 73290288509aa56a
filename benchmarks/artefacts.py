"""Artefact or subject: fits the coefficients of the score, and reports how well it tells the two apart.

Written down on 27 November 2026, 23:41, before the first figure of any of this was seen.

**Sets** (`artefact_sets.py`), at most 3,000 documents of each, of classes with at least 20.
*For choosing* features, forms of features and everything else: the ten sets kept for tuning
(`untuned/`), every second of the sets built from packages in alphabetical order from the first,
and imdb, tweets, sms, banking.
*For reporting*: the other sets built from packages, and emotion, snli, yelp, preferences. Nothing is
chosen on them.

**Kinds of marks** (`artefact_marks.py`). CHOOSING has ten kinds, REPORTING twelve others. Every mark is
put into 2, 5, 10, 20, 50 or 60 % of the documents of a class, drawn at random, at least 12 of them.

**Labels of candidates.** Of a planted draw: a candidate is a *mark* if all its words are words of the
mark and at least half of its documents were changed. Of a clean draw: every candidate is an
*ordinary* one, unless all its words are in NATURAL (a list of artefacts that are visible in the texts,
written by reading them before any audit); those are left out, and counted apart. Forms keep their
rule and are not scored.

**Figures.**
1. *Unseen sets and kinds*: coefficients fitted on the sets and kinds for choosing, figures of the
   sets and kinds for reporting.
2. *Each set and kind left out*: for every set and kind, coefficients fitted on all other sets and
   all other kinds.
A mark is *found* if a candidate of it has a probability of one half or more. Per kind, per group
of kinds, per rate and per language; accusations per clean set; a calibration curve.
3. *Whole audits* on the sets for reporting with kinds for reporting, beside version 0.3 on the same
   draws: a mark is found if a finding of kind shortcut names it, and clean draws are counted with
   a shortcut at "medium" or above that names a word outside NATURAL.
The coefficients in the package are fitted on all sets and kinds.
"""

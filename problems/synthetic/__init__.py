"""A synchronous English-German grammar: a sentence, its translation, its tree.

Read it from the bottom: `german` and `english` inflect, `lexicon` and `verbs` hold the
words, `phrases` and `adverbials` draw the parts of a clause, `linearization` orders
them, `clauses` and `relatives` draw clauses, `sentences`, `questions` and `anaphora`
put clauses together, `grammar` makes a corpus of them. Standard library only.
"""

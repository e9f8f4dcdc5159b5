"""How well models predict rows that they have not seen, on folds that all of them share.

Throughout this package `X` of shape (n_rows, n_columns) is a table, `y` of shape (n_rows,) its
targets, `task` "classification" or "regression", `weight` of shape (n_rows,) what each row counts,
`groups` and `order` of shape (n_rows,) which rows go together and what is later, `folds` which rows
are held out, and `seed` that of everything random.
"""

"""How well models predict rows that they have not seen, on folds that all of them share."""

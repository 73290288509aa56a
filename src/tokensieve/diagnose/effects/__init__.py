"""How words affect a model's predictions: gradients, removing, inserting, and the formatting of whole documents."""

"""What words do to a model's predictions: gradients, removing, inserting, and the form of whole documents."""

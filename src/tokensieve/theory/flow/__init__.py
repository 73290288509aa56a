"""The gradient flow of p: its loss, the curve, and the coordinates that split ties off."""

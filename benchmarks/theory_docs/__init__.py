"""What only the pages about the theory use: joint flows, fixed steps, sweeps, phase diagrams,
LaTeX."""

"""Reports for people: terminal, pages, Markdown and pictures, and the files of a result."""

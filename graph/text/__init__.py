"""Text: what words, entities, links and URLs are, and which input is valid."""

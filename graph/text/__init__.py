"""Text: words, entities, links and URLs in texts, and the validation of input."""

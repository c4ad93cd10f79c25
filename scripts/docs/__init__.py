"""Write the generated parts of the documentation (`python -m scripts.docs`); `site.py` is a hook of mkdocs."""

"""Between messages and text: templates and what the text means."""

"""Training an MTP head for a model: text, the trunk's law over it, distillation, the head file."""

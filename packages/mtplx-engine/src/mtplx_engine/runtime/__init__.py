"""The engine at work: threads, queue, mailboxes."""

"""What a decision reads: one statement for any number of questions, and compiled policies, which never change."""

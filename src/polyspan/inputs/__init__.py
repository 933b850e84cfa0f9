"""From what a user gives to clean, scaled arrays; or one sentence that says what is wrong."""

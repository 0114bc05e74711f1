"""What runs inside a job. Imports the standard library and the framework only, on Python 3.8 and later."""

"""What explains a graph and a program: errors, pictures, watching, diagnoses."""

"""Runs inside the script: times next of its loaders and what their workers do. Standard library only; torch is used
where the script has imported it, never imported. No thread, no queue, no value changed; whatever fails here is written
down and the script goes on without.
"""

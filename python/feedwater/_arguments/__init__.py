"""Single arguments of Loader: checked, or refused with the reason."""

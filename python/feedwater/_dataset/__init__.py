"""The data that a Loader is made of: folders, ImageFolders, Subsets, lists of files."""

"""The one way in: every request, from whichever front end, is handled and logged here."""

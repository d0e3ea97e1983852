"""Holds documents against a JSON Schema: {"schema": {}, "documents": []} in, for each document a list of messages out."""

import json
import sys

from jsonschema import Draft202012Validator

asked = json.load(sys.stdin)
Draft202012Validator.check_schema(asked["schema"])
validator = Draft202012Validator(asked["schema"])
messages = [[error.message for error in validator.iter_errors(document)] for document in asked["documents"]]
json.dump(messages, sys.stdout)

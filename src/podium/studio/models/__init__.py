"""Language models as assessors of a project: who they are, their runs, answers and audits."""

"""Language models as assessors: rubrics, endpoints, budgets, and a log of every answer."""

"""Projects and the versions of their lines; :mod:`chatapp.models` exports them with the rest."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chatapp.text.lengths import NAME_LENGTH, SLUG_LENGTH


class Project(models.Model):
    """A folder of conversations, with what they have in common."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="projects")
    name = models.CharField(max_length=NAME_LENGTH)
    slug = models.SlugField(max_length=SLUG_LENGTH)
    """Its name in addresses and in the file system; stays when the project is renamed."""
    colour = models.CharField(max_length=16, blank=True, default="")
    instructions = models.TextField(blank=True, default="")
    """What is asked of the model in all its conversations; part of their requests."""
    default_model = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    """Of new conversations; empty: the person's own default."""
    lines = models.JSONField(default=dict, blank=True)
    """The lines kept for its conversations, as in their newest version."""
    lines_version = models.PositiveIntegerField(default=0)
    """The number of that version; 0 before the first."""
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "slug"], name="project_owner_slug"),
        ]

    def __str__(self) -> str:
        return self.name


class ProjectVersion(models.Model):
    """One version of a project's lines; immutable: a change makes a new one."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="versions")
    version = models.PositiveIntegerField()
    content_of = models.PositiveIntegerField()
    """The version whose lines these are: itself, or an older one that Undo or Redo brought back."""
    before = models.PositiveIntegerField()
    """``content_of`` of the version that a change was made of; Undo leads there."""
    lines = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "version"], name="project_version_once"),
        ]

    def __str__(self) -> str:
        return f"{self.project_id}: version {self.version}"

"""What decisions are measured against: a plain DRF view that reads one row and inserts one, behind the same middleware."""

from typing import Any

from django.core.wsgi import get_wsgi_application
from django.db import models
from django.urls import include, path

application = get_wsgi_application()

from django.conf import settings  # noqa: E402  (settings are ready from here on)
from rest_framework.request import Request  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.serializers import CharField, DictField, Serializer  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from evaluations.kernel.clock import now  # noqa: E402
from policies.models import System  # noqa: E402

settings.ROOT_URLCONF = "tests.bench.plain"


class Row(models.Model):
    """A row that the view inserts."""

    key = models.TextField()
    at = models.DateTimeField(default=now)

    class Meta:
        app_label = "compliance"
        db_table = "bench_plain"
        managed = False


class Asked(Serializer[Any]):
    resource = DictField(child=CharField())


class PlainView(APIView):
    authentication_classes = ()
    permission_classes = ()

    def post(self, request: Request) -> Response:
        asked = Asked(data=request.data)
        asked.is_valid(raise_exception=True)
        system = System.objects.get(key=asked.validated_data["resource"]["id"])
        row = Row.objects.create(key=system.key)
        return Response({"id": row.pk, "key": system.key, "title": system.title})


urlpatterns = [path("plain", PlainView.as_view()), path("", include("compliance.urls"))]

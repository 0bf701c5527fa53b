# One image for web, worker, scheduler and migrate; docker-compose.yml says which is which.
FROM python:3.13-slim AS build
# requirements-telemetry.lock adds what sends spans to OpenTelemetry.
ARG REQUIREMENTS=requirements.lock
COPY requirements.lock requirements-telemetry.lock /tmp/
RUN python -m venv /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir --require-hashes -r /tmp/${REQUIREMENTS}

FROM python:3.13-slim
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    WRITEGATE_BIND=0.0.0.0 \
    WRITEGATE_DATA_DIR=/var/lib/writegate \
    WRITEGATE_STATIC_DIR=/opt/writegate-static \
    WRITEGATE_LOG_FORMAT=json
RUN useradd --system --uid 10001 --home-dir /var/lib/writegate --create-home writegate
COPY --from=build /opt/venv /opt/venv
COPY . /opt/writegate
WORKDIR /opt/writegate
RUN WRITEGATE_SECRET_KEY=for-collecting-only python manage.py collectstatic --no-input --verbosity 0
USER writegate
EXPOSE 8000
STOPSIGNAL SIGTERM
CMD ["python", "manage.py", "serve", "web"]
